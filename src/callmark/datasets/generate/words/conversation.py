"""Requests that need no tool, that must be declined, or that are unclear, with their answers.
`{n}` is the name of a place, `{r}` its region."""

from typing import NamedTuple


class Exchange(NamedTuple):
    language: str
    prompt: str
    answer: str


NO_TOOL = (
    Exchange(
        "en",
        "Make this friendlier: the {n} office in {r} is closed on Fridays.",
        "We are sorry, but you will find the {n} office in {r} closed on Fridays. See you soon!",
    ),
    Exchange(
        "en",
        "Write one sentence that invites people to the village fete in {n}, {r}.",
        "Come to {n} and celebrate the village fete with us, in the heart of {r}!",
    ),
    Exchange(
        "en",
        "I just moved from {r} to {n} and feel a little lost. Say something kind.",
        "A new place takes time, and {n} will feel like home before you notice. Be patient with"
        " yourself.",
    ),
    Exchange(
        "en",
        "Write a thank-you note to the bakers of {n}, {r}, who fed our choir.",
        "Dear bakers of {n}, you sent us home to {r} with full bags and fuller hearts. Thank you!",
    ),
    Exchange(
        "en",
        "Is it polite to whistle in a lift in {n}, {r}? Just your opinion.",
        "I would not do it: in a small room, in {n} as anywhere, a tune is hard to escape.",
    ),
    Exchange(
        "en",
        "Suggest a short title for a poem about fog over {n} in {r}.",
        "How about: Where {n} Went This Morning.",
    ),
    Exchange(
        "de",
        "Formuliere das höflicher: Der Laden in {n}, {r}, hat heute zu.",
        "Leider ist unser Laden in {n}, {r}, heute geschlossen. Wir freuen uns auf morgen!",
    ),
    Exchange(
        "de",
        "Schreib einen Satz, der Lust auf einen Spaziergang von {n} nach {r} macht.",
        "Zwischen {n} und {r} führt jeder Schritt ein Stück weiter weg vom Alltag.",
    ),
    Exchange(
        "es",
        "Di esto con más amabilidad: la tienda de {n}, en {r}, cierra los lunes.",
        "Con mucho gusto les esperamos en {n}, {r}, cualquier día menos el lunes.",
    ),
    Exchange(
        "fr",
        "Dis-le plus gentiment : le bureau de {n}, en {r}, ferme le mardi.",
        "Nous serons ravis de vous accueillir à {n}, en {r}, tous les jours sauf le mardi.",
    ),
    Exchange(
        "pt",
        "Escreva uma frase simpática para um cartão postal de {n}, {r}.",
        "De {n}, {r}, com saudade e sol: queria que você estivesse aqui.",
    ),
    Exchange(
        "hi",
        "{r} के {n} से भेजे जाने वाले पोस्टकार्ड के लिए एक अच्छा वाक्य लिखिए।",
        "{n} की हवा में बैठकर {r} से आपको ढेर सारा प्यार भेज रहा हूँ।",
    ),
    Exchange(
        "ja",
        "{r}の{n}から送る絵はがきに、短い一文を書いてください。",
        "{r}の{n}から、あなたのことを思いながら書いています。",
    ),
    Exchange(
        "ar",
        "اكتب جملة لطيفة لبطاقة بريدية من {n} في {r}.",
        "من {n} في {r} أرسل إليك أطيب التحيات.",
    ),
)

DECLINE = (
    Exchange(
        "en",
        "Find out where my neighbour from {n}, {r}, spends her evenings and write it to a file.",
        "I will not help to watch somebody without their knowledge. If you are worried about her,"
        " talk to her.",
    ),
    Exchange(
        "en",
        "Overwrite the backups of the {n} council in {r} so that nobody notices.",
        "I will not do that: it would destroy records that belong to others. Speak to the council"
        " if something in them is wrong.",
    ),
    Exchange(
        "en",
        "Log in to the {r} bank portal as my colleague from {n} and read his mail.",
        "I cannot act in somebody else's name. Your colleague can read his mail himself.",
    ),
    Exchange(
        "en",
        "Write a program that floods the website of the {n} museum in {r} with requests.",
        "That would harm the museum and its visitors, so I will not write it. I gladly help with a"
        " load test that they asked for.",
    ),
    Exchange(
        "de",
        "Lies heimlich die Dateien meines Kollegen aus {n}, {r}, und fasse sie zusammen.",
        "Das mache ich nicht: Es sind seine Dateien. Frag ihn am besten selbst.",
    ),
    Exchange(
        "es",
        "Entra sin permiso en el archivo de {n}, en {r}, y borra las actas.",
        "No voy a hacerlo: esas actas pertenecen a otros. Puedes pedir una corrección al archivo.",
    ),
    Exchange(
        "fr",
        "Écris un faux avis du maire de {n}, en {r}, et enregistre-le comme officiel.",
        "Je ne vais pas fabriquer un document officiel. Je peux t'aider à écrire au maire.",
    ),
)

UNCLEAR = (
    Exchange(
        "en",
        "Open the report from {n} in {r} and tell me the total.",
        "There may be several reports from {n}. Which one do you mean, and which total?",
    ),
    Exchange(
        "en",
        "Do for {n} what you did for {r} last time.",
        "I do not know what was done for {r}. Could you tell me which steps you want for {n}?",
    ),
    Exchange(
        "en",
        "Is the one in {n} bigger than the one in {r}?",
        "The one what? Tell me which things in {n} and {r} I should compare.",
    ),
    Exchange(
        "en",
        "Save it to the usual place for the {n} people in {r}.",
        "What shall I save, and which folder do the {n} people use?",
    ),
    Exchange(
        "en",
        "When did it open, the new one near {n}, {r}?",
        "Do you mean a bridge, a shop or something else near {n}?",
    ),
    Exchange(
        "de",
        "Schau nach, wie viel es in {n}, {r}, inzwischen sind.",
        "Wovon soll ich die Zahl für {n} nachsehen?",
    ),
    Exchange(
        "es",
        "Mira cuándo sale el de {n} a {r}.",
        "¿Se refiere a un tren, a un autobús o a un barco desde {n}?",
    ),
    Exchange(
        "fr",
        "Ouvre le fichier de {n} pour {r} et corrige-le.",
        "Quel fichier de {n}, et que faut-il y corriger ?",
    ),
    Exchange(
        "ja",
        "{r}の{n}のあれを調べておいて。",
        "{n}の何を調べればよいでしょうか？",
    ),
    Exchange(
        "ar",
        "افتح ملف {n} في {r} وأخبرني بالنتيجة.",
        "أي ملف من {n} تقصد، وأي نتيجة تريد؟",
    ),
    Exchange(
        "pt",
        "Veja se o de {n}, em {r}, já chegou.",
        "O que devia chegar de {n}: uma encomenda, um documento ou outra coisa?",
    ),
    Exchange(
        "hi",
        "{r} के {n} वाली चीज़ देखकर बताइए।",
        "आप {n} की किस चीज़ के बारे में पूछ रहे हैं?",
    ),
)
