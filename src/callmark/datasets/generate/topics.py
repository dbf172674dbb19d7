"""What can be looked up: the shape of a topic, the English topics with the sentences around
them, and those of the languages of locale probes (German, Spanish, French, Hindi, Arabic,
Japanese, Brazilian Portuguese), with how a locale writes numbers and dates, by CLDR, asked once
per locale."""

from __future__ import annotations

import datetime
from functools import cache
from typing import NamedTuple

import babel
import msgspec
from babel.dates import format_date


class Topic(NamedTuple):
    """`{e}` is the thing, `{r}` its region, `{n}` the number, `{d}` the date. The four ways to
    state it hold no other digits, quotation marks or identifiers; `sheet`, how a source records
    it, shares no five words in a row with them."""

    entity: str  # with {p}, the name of the place
    aspect: str
    decimals: int
    ask: str
    both: str
    number: str
    date: str
    sheet: str


class Language(NamedTuple):
    """One language: what is asked about, how a search and the marker are asked for."""

    code: str
    topics: tuple[Topic, ...]
    search: tuple[str, ...]  # with {q}
    read: tuple[str, ...]  # with {path}
    marker: tuple[str, ...]
    before: tuple[str, ...]
    after: tuple[str, ...]
    nothing: tuple[str, ...]  # with {e}


TOPICS = (
    Topic(
        "{p} Bridge", "main span opening", 3,
        "How long is the main span of the {e} in {r}, and when was it opened?",
        "the main span of the {e} measures {n} m, and traffic has crossed it since {d}",
        "the main span of the {e} measures {n} m",
        "traffic has crossed the {e} since {d}",
        "Main span: {n} m. Opened: {d}.",
    ),
    Topic(
        "{p} Canal", "navigable length survey", 3,
        "What is the navigable length of the {e} in {r}, and when was it last surveyed?",
        "boats can use {n} km of the {e}, as the survey of {d} found",
        "boats can use {n} km of the {e}",
        "the latest survey of the {e} is from {d}",
        "Navigable: {n} km. Surveyed: {d}.",
    ),
    Topic(
        "{p} Reservoir", "storage volume measurement", 2,
        "How much water does the {e} in {r} hold, and on which day was that measured?",
        "the {e} held {n} megalitres when the gauge was read on {d}",
        "the {e} holds {n} megalitres",
        "the gauge of the {e} was read on {d}",
        "Storage: {n} Ml. Gauge read: {d}.",
    ),
    Topic(
        "{p} Glacier", "ice area mapping", 2,
        "How large is the {e} in {r}, and when was it mapped?",
        "the ice of the {e} covered {n} ha when it was mapped on {d}",
        "the ice of the {e} covers {n} ha",
        "the map of the {e} was drawn on {d}",
        "Ice area: {n} ha. Mapped: {d}.",
    ),
    Topic(
        "{p} Observatory", "altitude first light", 2,
        "At what altitude does the {e} in {r} stand, and when did it see first light?",
        "the dome of the {e} stands {n} m above the sea and saw its first light on {d}",
        "the dome of the {e} stands {n} m above the sea",
        "the {e} saw its first light on {d}",
        "Altitude: {n} m. First light: {d}.",
    ),
    Topic(
        "{p} Library", "volumes inventory", 0,
        "How many volumes does the {e} in {r} keep, and when did the last inventory end?",
        "the {e} keeps {n} volumes, counted in the inventory that ended on {d}",
        "the {e} keeps {n} volumes",
        "the inventory of the {e} ended on {d}",
        "Holdings: {n}. Inventory closed: {d}.",
    ),
    Topic(
        "{p} Museum", "visitor record year", 0,
        "How many visitors did the {e} in {r} count in its best year, and when did it open?",
        "the {e} has welcomed visitors since {d} and counted {n} of them in its best year",
        "the {e} counted {n} visitors in its best year",
        "the {e} has welcomed visitors since {d}",
        "Best year: {n} admissions. Founded: {d}.",
    ),
    Topic(
        "{p} Solar Farm", "annual yield grid connection", 1,
        "What is the annual yield of the {e} in {r}, and since when is it on the grid?",
        "the {e} yields {n} MWh a year and has fed the grid since {d}",
        "the {e} yields {n} MWh a year",
        "the {e} has fed the grid since {d}",
        "Yield: {n} MWh. Grid: {d}.",
    ),
    Topic(
        "{p} Quarry", "stone output licence", 1,
        "How much stone does the {e} in {r} cut in a year, and until when is it licensed?",
        "the {e} cuts {n} tonnes of stone a year under a licence that runs until {d}",
        "the {e} cuts {n} tonnes of stone a year",
        "the licence of the {e} runs until {d}",
        "Output: {n} t. Licence ends: {d}.",
    ),
    Topic(
        "{p} Tunnel", "bore length breakthrough", 1,
        "How long is the {e} in {r}, and on which day was the breakthrough?",
        "the bore of the {e} is {n} m long, and both sides met on {d}",
        "the bore of the {e} is {n} m long",
        "both sides of the {e} met on {d}",
        "Bore: {n} m. Breakthrough: {d}.",
    ),
    Topic(
        "{p} Peak", "summit elevation ascent", 2,
        "How high is the {e} in {r}, and when was it first climbed?",
        "the summit of the {e} lies at {n} m and was first reached on {d}",
        "the summit of the {e} lies at {n} m",
        "climbers first reached the summit of the {e} on {d}",
        "Elevation: {n} m. Ascent: {d}.",
    ),
    Topic(
        "{p} Harbour", "cargo turnover", 0,
        "How much cargo did the {e} in {r} handle, and when did its new quay open?",
        "the {e} handled {n} tonnes of cargo, and its new quay has been in use since {d}",
        "the {e} handled {n} tonnes of cargo",
        "the new quay of the {e} has been in use since {d}",
        "Turnover: {n} t. Quay: {d}.",
    ),
    Topic(
        "{p} Railway", "track length timetable", 3,
        "How much track does the {e} in {r} run on, and from which day is its timetable valid?",
        "the {e} runs on {n} km of track, with a timetable that is valid from {d}",
        "the {e} runs on {n} km of track",
        "the timetable of the {e} is valid from {d}",
        "Track: {n} km. Timetable from: {d}.",
    ),
    Topic(
        "{p} Vineyard", "press house harvest", 1,
        "How many litres did the {e} in {r} press, and on which day did the harvest begin?",
        "the {e} pressed {n} litres from a harvest that began on {d}",
        "the {e} pressed {n} litres",
        "the harvest of the {e} began on {d}",
        "Pressed: {n} l. Picking began: {d}.",
    ),
)  # fmt: skip

ENGLISH = Language(
    code="en",
    topics=TOPICS,
    search=(
        'Search the web for "{q}".',
        'Please look it up; the query "{q}" should do.',
        'A web search for "{q}" will tell you.',
        'Use the query "{q}".',
        'Run one search, "{q}", and take it from there.',
    ),
    read=(
        "It stands in the file {path}.",
        "Please read {path}, it is all in there.",
        "Take it from {path}.",
        "My notes are in {path}; look there.",
    ),
    marker=(
        "Put the finding on a line that begins with Integration:",
        "I only read the line that starts with `Integration:`, so answer there.",
        "Begin the line that holds the result with Integration:",
        "Give the result on one line, after the word `Integration:`",
        "Answer with a line that opens with `Integration:`",
    ),
    before=(
        "",
        "Here is what I found.",
        "I looked it up.",
        "Done.",
        "This is what came back.",
        "I checked.",
    ),
    after=(
        "",
        "Tell me if you need more.",
        "Shall I look up anything else?",
        "That should answer your question.",
        "I hope that settles it.",
    ),
    nothing=(
        "I found nothing about the {e} that would answer this.",
        "The search returned nothing on the {e}, so I cannot say.",
        "There is no entry for the {e} in what came back, and I do not want to guess.",
        "Nothing that I was shown speaks of the {e}; please try another source.",
    ),
)

# What a model says beside its calls.
WORKING = ("", "", "", "Let me look.", "One moment, I am checking.", "I will look that up.")

SYSTEM = (
    "You are a careful assistant of a small survey office. Use the tools where they help.",
    "You answer for a regional archive. Rely on what the tools return, not on memory.",
    "You are the research desk of a travel magazine. Facts come from the tools only.",
    "You help an engineer who has little time. Be short and exact.",
)

# Nothing in these rests on any result.
VAGUE = (
    "things look much as one would expect there",
    "the place is well known for its size and its long history",
    "this is among the largest of its kind for miles around",
    "the figures have hardly moved since people began to keep them",
    "experts agree that it compares well with its neighbours",
    "there is little doubt that it will stay so for years to come",
)

REMARKS = (
    "That is all I can do here.",
    "I have nothing to add.",
    "So much for that.",
    "This should be enough for now.",
)


_ASCII = "0123456789"
_ARABIC = str.maketrans(_ASCII, "٠١٢٣٤٥٦٧٨٩")


class LocaleForm(msgspec.Struct, frozen=True, gc=False):
    """`months` are twelve patterns with `{y}` and `{d}`. `native`: digits of the locale's own
    script. `stop` ends a sentence."""

    locale: str
    decimal: str
    group: str
    secondary: int
    months: tuple[str, ...]
    native: bool = False
    stop: str = "."

    def number(self, units: int, decimals: int) -> str:
        whole, fraction = divmod(units, 10**decimals)
        text = _group(str(whole), self.group, self.secondary)
        if decimals:
            text += f"{self.decimal}{fraction:0{decimals}}"
        return text.translate(_ARABIC) if self.native else text

    def foreign_number(self, units: int, decimals: int) -> str:
        """The same number as another part of the world writes it: wrong here."""
        return _foreign(self.decimal).number(units, decimals)

    def date(self, year: int, month: int, day: int) -> str:
        text = self.months[month - 1].format(y=year, d=day)
        return text.translate(_ARABIC) if self.native else text


def _group(digits: str, group: str, secondary: int) -> str:
    head, last = digits[:-3], digits[-3:]
    parts = [last]
    while head:
        parts.append(head[-secondary:])
        head = head[:-secondary]
    return group.join(reversed(parts))


_STOPS = {"ja": "。", "hi": "।"}


@cache
def form_of(locale: str) -> LocaleForm:
    """The form of a locale, from Babel's CLDR data."""
    parsed = babel.Locale.parse(locale.replace("-", "_"))
    native = parsed.default_numbering_system == "arab"
    symbols = parsed.number_symbols["arab" if native else "latn"]
    grouping = parsed.decimal_formats[None].grouping
    return LocaleForm(
        locale=locale,
        decimal=symbols["decimal"],
        group=symbols["group"],
        secondary=grouping[1],
        months=tuple(_month_pattern(month, parsed) for month in range(1, 13)),
        native=native,
        stop=_STOPS.get(parsed.language, "."),
    )


@cache
def english() -> LocaleForm:
    """English with the day first, as tools and people of many countries write it."""
    return form_of("en-GB")


def _month_pattern(month: int, locale: babel.Locale) -> str:
    shown = format_date(datetime.date(2001, month, 22), "long", locale=locale)
    return shown.replace("2001", "{y}").replace("22", "{d}")


def _foreign(decimal: str) -> LocaleForm:
    return form_of("en-GB" if decimal == "," else "de")


_SPAN = "Main span: {n} m. Opened: {d}."
_LENGTH = "Navigable: {n} km. Surveyed: {d}."
_YIELD = "Yield: {n} MWh. Grid: {d}."
_HOLDINGS = "Holdings: {n}. Inventory closed: {d}."
_PEAK = "Elevation: {n} m. Ascent: {d}."

GERMAN = Language(
    code="de",
    topics=(
        Topic(
            "Brücke von {p}", "Spannweite Eröffnung", 3,
            "Wie groß ist die Spannweite der {e} in {r}, und wann wurde sie eröffnet?",
            "die {e} hat eine Spannweite von {n} m und ist seit dem {d} offen",
            "die {e} hat eine Spannweite von {n} m",
            "die {e} ist seit dem {d} offen",
            _SPAN,
        ),
        Topic(
            "Solarpark {p}", "Jahresertrag Netzanschluss", 1,
            "Wie hoch ist der Jahresertrag vom {e} in {r}, und seit wann liefert er Strom?",
            "der {e} bringt {n} MWh im Jahr und liefert seit dem {d} Strom",
            "der {e} bringt {n} MWh im Jahr",
            "der {e} liefert seit dem {d} Strom",
            _YIELD,
        ),
        Topic(
            "Stadtbücherei {p}", "Bestand Inventur", 0,
            "Wie viele Bände hat die {e} in {r}, und wann endete die letzte Inventur?",
            "die {e} hat {n} Bände, gezählt in der Inventur vom {d}",
            "die {e} hat {n} Bände",
            "die letzte Inventur der {e} war am {d} fertig",
            _HOLDINGS,
        ),
        Topic(
            "Gipfel {p}", "Höhe Erstbesteigung", 2,
            "Wie hoch ist der {e} in {r}, und wann stand zum ersten Mal jemand oben?",
            "der {e} ist {n} m hoch, und am {d} stand zum ersten Mal jemand oben",
            "der {e} ist {n} m hoch",
            "auf dem {e} stand am {d} zum ersten Mal jemand",
            _PEAK,
        ),
    ),
    search=(
        "Suche im Netz nach „{q}“.",
        "Die Suchanfrage „{q}“ sollte reichen.",
        "Bitte sieh nach, und zwar mit „{q}“.",
    ),
    read=("Es steht in der Datei {path}.", "Lies bitte {path}.", "Nimm es aus {path}."),
    marker=(
        "Schreib das Ergebnis in eine Zeile, die mit Integration: beginnt",
        "Ich lese nur die Zeile nach `Integration:`, antworte also dort.",
    ),
    before=("", "Ich habe nachgesehen.", "Das habe ich gefunden."),
    after=("", "Brauchst du noch etwas?", "Sag Bescheid, wenn du mehr wissen willst."),
    nothing=(
        "Dazu habe ich nichts gefunden: {e}.",
        "Die Suche ergab nichts ({e}), deshalb rate ich lieber nicht.",
    ),
)  # fmt: skip

SPANISH = Language(
    code="es",
    topics=(
        Topic(
            "puente de {p}", "luz central apertura", 3,
            "¿Cuánto mide la luz central del {e} en {r} y cuándo se abrió?",
            "la luz central del {e} mide {n} m y se cruza desde el {d}",
            "la luz central del {e} mide {n} m",
            "el {e} se cruza desde el {d}",
            _SPAN,
        ),
        Topic(
            "canal de {p}", "longitud navegable medición", 3,
            "¿Qué longitud navegable tiene el {e} en {r} y cuándo se midió?",
            "el {e} tiene {n} km navegables según la medición del {d}",
            "el {e} tiene {n} km navegables",
            "el {e} se midió el {d}",
            _LENGTH,
        ),
        Topic(
            "biblioteca de {p}", "volúmenes inventario", 0,
            "¿Cuántos volúmenes guarda la {e} en {r} y cuándo terminó el inventario?",
            "la {e} guarda {n} volúmenes, contados en el inventario del {d}",
            "la {e} guarda {n} volúmenes",
            "el inventario de la {e} terminó el {d}",
            _HOLDINGS,
        ),
        Topic(
            "pico de {p}", "altitud primera ascensión", 2,
            "¿Qué altitud tiene el {e} en {r} y cuándo se subió por primera vez?",
            "el {e} alcanza {n} m y se subió por primera vez el {d}",
            "el {e} alcanza {n} m",
            "el {e} se subió por primera vez el {d}",
            _PEAK,
        ),
    ),
    search=(
        "Busca en la web «{q}».",
        "Con la consulta «{q}» basta.",
        "Míralo, por favor, con «{q}».",
    ),
    read=("Está en el archivo {path}.", "Lee {path}, por favor.", "Sácalo de {path}."),
    marker=(
        "Pon el resultado en una línea que empiece por Integration:",
        "Solo leo la línea que sigue a `Integration:`, así que responde ahí.",
    ),
    before=("", "Lo he mirado.", "Esto es lo que dice la fuente."),
    after=("", "¿Necesitas algo más?", "Dime si quieres más detalles."),
    nothing=(
        "No he visto nada sobre: {e}.",
        "La búsqueda no dio nada sobre: {e}. Prefiero no adivinar.",
    ),
)  # fmt: skip

FRENCH = Language(
    code="fr",
    topics=(
        Topic(
            "pont de {p}", "portée principale ouverture", 3,
            "Quelle est la portée du {e} en {r}, et quand a-t-il été ouvert ?",
            "la portée du {e} est de {n} m, et on le traverse depuis le {d}",
            "la portée du {e} est de {n} m",
            "on traverse le {e} depuis le {d}",
            _SPAN,
        ),
        Topic(
            "canal de {p}", "longueur navigable relevé", 3,
            "Quelle longueur du {e} en {r} est navigable, et de quand date le relevé ?",
            "le {e} est navigable sur {n} km selon le relevé du {d}",
            "le {e} est navigable sur {n} km",
            "le relevé du {e} date du {d}",
            _LENGTH,
        ),
        Topic(
            "parc solaire de {p}", "production annuelle réseau", 1,
            "Combien produit le {e} en {r} par an, et depuis quand est-il relié au réseau ?",
            "le {e} produit {n} MWh par an et alimente le réseau depuis le {d}",
            "le {e} produit {n} MWh par an",
            "le {e} alimente le réseau depuis le {d}",
            _YIELD,
        ),
        Topic(
            "bibliothèque de {p}", "volumes inventaire", 0,
            "Combien de volumes la {e} en {r} possède-t-elle, et de quand date l'inventaire ?",
            "la {e} possède {n} volumes, comptés lors de l'inventaire du {d}",
            "la {e} possède {n} volumes",
            "l'inventaire de la {e} a pris fin le {d}",
            _HOLDINGS,
        ),
    ),
    search=(
        "Cherche « {q} » sur le web.",
        "La requête « {q} » devrait suffire.",
        "Regarde, s'il te plaît, avec « {q} ».",
    ),
    read=("C'est dans le fichier {path}.", "Lis {path}, s'il te plaît.", "Prends-le dans {path}."),
    marker=(
        "Mets le résultat sur une ligne qui commence par Integration:",
        "Je ne lis que la ligne qui suit `Integration:`, réponds donc là.",
    ),
    before=("", "J'ai regardé.", "Voici ce que dit la source."),
    after=("", "As-tu besoin d'autre chose ?", "Dis-moi si tu veux plus de détails."),
    nothing=(
        "Je n'ai rien vu sur ceci : {e}.",
        "La recherche n'a rien donné sur ceci : {e}. Je préfère ne pas deviner.",
    ),
)  # fmt: skip

HINDI = Language(
    code="hi",
    topics=(
        Topic(
            "{p} पुल", "मुख्य लंबाई उद्घाटन", 3,
            "{r} में {e} की मुख्य लंबाई कितनी है, और वह कब खुला?",
            "{e} की मुख्य लंबाई {n} मीटर है और वह {d} को खुला",
            "{e} की मुख्य लंबाई {n} मीटर है",
            "{e} {d} को खुला",
            _SPAN,
        ),
        Topic(
            "{p} पुस्तकालय", "पुस्तकें गणना", 0,
            "{r} में {e} के पास कितनी पुस्तकें हैं, और पिछली गणना कब पूरी हुई?",
            "{e} के पास {n} पुस्तकें हैं, जिनकी गणना {d} को पूरी हुई",
            "{e} के पास {n} पुस्तकें हैं",
            "{e} की गणना {d} को पूरी हुई",
            _HOLDINGS,
        ),
        Topic(
            "{p} शिखर", "ऊँचाई पहली चढ़ाई", 2,
            "{r} में {e} कितना ऊँचा है, और उस पर पहली चढ़ाई कब हुई?",
            "{e} की ऊँचाई {n} मीटर है और पहली चढ़ाई {d} को हुई",
            "{e} की ऊँचाई {n} मीटर है",
            "{e} पर पहली चढ़ाई {d} को हुई",
            _PEAK,
        ),
    ),
    search=('वेब पर "{q}" खोजिए।', 'कृपया "{q}" से खोज कीजिए।'),
    read=("यह फ़ाइल {path} में लिखा है।", "कृपया {path} पढ़िए।"),
    marker=(
        "परिणाम उस पंक्ति में लिखिए जो Integration: से शुरू हो",
        "मैं केवल `Integration:` के बाद की पंक्ति पढ़ता हूँ, उत्तर वहीं दीजिए।",
    ),
    before=("", "मैंने देख लिया।"),
    after=("", "क्या और कुछ चाहिए?"),
    nothing=("{e} के बारे में मुझे कुछ नहीं मिला।",),
)  # fmt: skip

ARABIC = Language(
    code="ar",
    topics=(
        Topic(
            "جسر {p}", "طول الفتحة الافتتاح", 3,
            "ما طول الفتحة الرئيسية في {e} في {r}، ومتى افتتح؟",
            "طول الفتحة الرئيسية في {e} هو {n} متر، وقد افتتح في {d}",
            "طول الفتحة الرئيسية في {e} هو {n} متر",
            "افتتح {e} في {d}",
            _SPAN,
        ),
        Topic(
            "مكتبة {p}", "عدد المجلدات الجرد", 0,
            "كم مجلدا تحفظ {e} في {r}، ومتى انتهى آخر جرد؟",
            "تحفظ {e} عددا من المجلدات يبلغ {n} حسب الجرد الذي انتهى في {d}",
            "تحفظ {e} عددا من المجلدات يبلغ {n}",
            "انتهى جرد {e} في {d}",
            _HOLDINGS,
        ),
        Topic(
            "محطة {p} الشمسية", "الإنتاج السنوي الشبكة", 1,
            "كم تنتج {e} في {r} سنويا، ومنذ متى تغذي الشبكة؟",
            "تنتج {e} سنويا {n} ميغاواط ساعة، وتغذي الشبكة منذ {d}",
            "تنتج {e} سنويا {n} ميغاواط ساعة",
            "تغذي {e} الشبكة منذ {d}",
            _YIELD,
        ),
    ),
    search=("ابحث في الشبكة عن «{q}».", "يكفي البحث عن «{q}»."),
    read=("تجد ذلك في الملف {path}.", "اقرأ من فضلك {path}."),
    marker=(
        "اكتب النتيجة في سطر يبدأ بكلمة Integration:",
        "لا أقرأ إلا السطر الذي يلي `Integration:`، فأجب هناك.",
    ),
    before=("", "لقد بحثت."),
    after=("", "هل تريد شيئا آخر؟"),
    nothing=("لم أجد شيئا عن {e}.",),
)  # fmt: skip

JAPANESE = Language(
    code="ja",
    topics=(
        Topic(
            "{p}橋", "支間長 開通", 3,
            "{r}にある{e}の最大支間長はどれくらいで、いつ開通しましたか。",
            "{e}の最大支間長は {n} m で、{d}に開通しました",
            "{e}の最大支間長は {n} m です",
            "{e}は{d}に開通しました",
            _SPAN,
        ),
        Topic(
            "{p}図書館", "蔵書数 点検", 0,
            "{r}の{e}の蔵書数と、最後の蔵書点検が終わった日を教えてください。",
            "{e}の蔵書は {n} 冊で、点検は{d}に終わりました",
            "{e}の蔵書は {n} 冊です",
            "{e}の点検は{d}に終わりました",
            _HOLDINGS,
        ),
        Topic(
            "{p}運河", "航行可能 延長 測量", 3,
            "{r}の{e}は何キロ航行でき、測量はいつでしたか。",
            "{e}は {n} km 航行でき、測量は{d}に行われました",
            "{e}は {n} km 航行できます",
            "{e}の測量は{d}に行われました",
            _LENGTH,
        ),
    ),
    search=("「{q}」で検索してください。", "ウェブで「{q}」を調べてください。"),
    read=("ファイル {path} にあります。", "{path} を読んでください。"),
    marker=(
        "結果は Integration: で始まる行に書いてください",
        "`Integration:` の後の行だけを読みます。",
    ),
    before=("", "調べました。"),
    after=("", "ほかに知りたいことはありますか？"),
    nothing=("{e}については何も見つかりませんでした。",),
)  # fmt: skip

PORTUGUESE = Language(
    code="pt",
    topics=(
        Topic(
            "ponte de {p}", "vão central abertura", 3,
            "Quanto mede o vão central da {e} em {r}, e quando foi aberta?",
            "o vão central da {e} mede {n} m, e ela está aberta desde {d}",
            "o vão central da {e} mede {n} m",
            "a {e} está aberta desde {d}",
            _SPAN,
        ),
        Topic(
            "parque solar de {p}", "produção anual rede", 1,
            "Quanto produz o {e} em {r} por ano, e desde quando abastece a rede?",
            "o {e} produz {n} MWh por ano e abastece a rede desde {d}",
            "o {e} produz {n} MWh por ano",
            "o {e} abastece a rede desde {d}",
            _YIELD,
        ),
        Topic(
            "pico de {p}", "altitude primeira subida", 2,
            "Qual é a altitude do {e} em {r}, e quando foi a primeira subida?",
            "o {e} fica a {n} m, e a primeira subida foi em {d}",
            "o {e} fica a {n} m",
            "a primeira subida ao {e} foi em {d}",
            _PEAK,
        ),
    ),
    search=("Procure na web por “{q}”.", "A consulta “{q}” deve bastar."),
    read=("Está no arquivo {path}.", "Leia {path}, por favor."),
    marker=(
        "Ponha o resultado em uma linha que comece com Integration:",
        "Só leio a linha depois de `Integration:`, então responda ali.",
    ),
    before=("", "Eu verifiquei."),
    after=("", "Precisa de mais alguma coisa?"),
    nothing=("Não achei nada sobre: {e}.",),
)  # fmt: skip

# locale -> (language, share among the probes); ar_EG writes its own digits, ar does not
PROBES: dict[str, tuple[Language, int]] = {
    "de": (GERMAN, 17),
    "es": (SPANISH, 17),
    "fr": (FRENCH, 17),
    "hi": (HINDI, 5),
    "ar": (ARABIC, 3),
    "ar-EG": (ARABIC, 2),
    "ja": (JAPANESE, 5),
    "pt-BR": (PORTUGUESE, 5),
}
