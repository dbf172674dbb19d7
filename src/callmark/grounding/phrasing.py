"""How arithmetic is told in words, in English, German, Spanish and French: patterns of shapes, in
which one sign stands for each number, share, day and time (`grounding.worded`)."""

from __future__ import annotations

import re

from callmark.grounding.text import CODES, SIGNS

# What stands for a value in a shape: a number, a share, a day, a time, a year or month, any other.
NUMBER, SHARE, ON, AT, YEAR, OTHER = map(chr, range(0xE000, 0xE006))
_N = f"[{NUMBER}{SHARE}]"
_WORD = r"[^\W\d_]{1,24}"
_STEP = rf"(?:[ /'’-]{_WORD}\.?|,? \(?[{ON}{AT}{YEAR}]\)?)"
_HEDGE = (
    r"(?:(?:(?:about|approximately|approx\.|roughly|around|nearly|almost|just|under|over|more|less"
    r"|than|some|close|to|slightly|circa|ca\.|etwa|rund|fast|knapp|gut|über|unter|mehr|weniger|als"
    r"|unos|unas|casi|aproximadamente|cerca|alrededor|más|menos|algo|environ|près|presque|plus"
    r"|moins|quelque|un peu|de|d|well)[ '’]|[~≈] ?)){0,3}"
)
HEDGES = re.compile(
    r"[~≈]|\b(?:about|appro\w+|roughly|around|nearly|almost|just|under|over|more than|less than"
    r"|some|close to|slightly|well|circa|ca|etwa|rund|fast|knapp|gut|über|unter|mehr als"
    r"|weniger als|unos|unas|casi|aprox\w+|cerca|alrededor|más de|menos de|algo|environ|près"
    r"|presque|plus de|moins de|quelque|un peu|or so|ungefähr)\b"
)
_UP_NOUN = (
    r"rise|increase|gain|growth|jump|climb|uptick|anstieg|plus|zuwachs|zunahme|steigerung|erhöhung"
    r"|aumento|subida|incremento|alza|ganancia|hausse|augmentation|progression"
)
_DOWN_NOUN = (
    r"drop|fall|decline|decrease|reduction|loss|dip|rückgang|abnahme|senkung|minus|caída|bajada"
    r"|descenso|reducción|disminución|pérdida|baisse|diminution|réduction|recul|perte|chute"
)
_NOUN = (
    rf"{_UP_NOUN}|{_DOWN_NOUN}|difference|change|gap|swing|differenz|unterschied|veränderung"
    r"|diferencia|variación|cambio|différence|écart|variation"
)
_UP = (
    r"rose|rises|risen|rising|grew|grows|grown|growing|increase[sd]?|increasing|climb(?:s|ed|ing)"
    r"|jump(?:s|ed)|surged|soared|went up|gone up|raised|stieg(?:en)?|gestiegen|wuchs|gewachsen"
    r"|kletterten?|erhöhte(?: sich)?|erhöht|subió|subieron|subido|aumentó|aumentado|creció|crecido"
    r"|augmenté|grimpé|progressé"
)
_DOWN = (
    r"fell|falls|fallen|falling|drop(?:s|ped|ping)|decline[sd]|decreased?|decreasing|shrank|shrunk"
    r"|plunged|dipped|sank|went down|gone down|lowered|reduced|sank(?:en)?|gesunken|fiel(?:en)?"
    r"|gefallen|schrumpften?|geschrumpft|bajó|bajaron|bajado|cayó|cayeron|caído|descendió"
    r"|disminuyó|disminuido|baissé|diminué|chuté|reculé"
)
GOES_UP = re.compile(rf"(?:{_UP}|{_UP_NOUN}|up|more|higher|mehr|höher|más|\+)")
GOES_DOWN = re.compile(
    rf"(?:{_DOWN}|{_DOWN_NOUN}|down|less|lower|fewer|cheaper|weniger|niedriger|menos|[-−–])"
)


def _steps(most: int) -> str:
    return rf"{_STEP}{{0,{most}}}"


_DET = r"(?:the |an? |its |their |your |den |die |der |das |los |las |el |la |les |le |l['’])?"
_PAIR = (
    rf"(?<!\w)(?:from|von|de|d['’]) ?{_DET}(?P<a>{_N}){_steps(6)},? (?:to|auf|zu|a|à|hasta)"
    rf" {_DET}(?P<b>{_N}){_steps(6)}"
)
_ARTICLE = r"(?:(?:an?|eine?[mnrs]?|une?|una) )?"
_TELLS = r"(?:(?:that is|that['’]s|which is|i\.e\.|or|soit|also|es decir|das sind|d\. ?h\.),? )?"
_END = r"(?=[),.;:!\]–—]|$| in\b| since\b| overall\b| on\b| year| month| over\b| within\b| and\b)"
_DELTA = (
    rf"(?: ?[,;:(–—-]{{1,2}} ?| - ){_TELLS}(?:"
    rf"{_ARTICLE}(?:{_WORD} ){{0,2}}?(?P<w0>{_NOUN}) (?:of|von|um|de|del|d['’]) ?{_HEDGE}"
    rf"(?P<c0>{_N})|{_ARTICLE}{_HEDGE}(?P<c1>{_N}){_steps(1)}[ -](?P<w1>{_NOUN})"
    rf"|(?P<w2>up|down|plus|minus|\+|[-−–])(?: by)? ?{_HEDGE}(?P<c2>{_N}){_steps(1)}{_END}"
    rf"|{_HEDGE}(?P<c3>{_N}){_steps(1)} (?P<w3>more|less|higher|lower|fewer|mehr|weniger|más|menos)"
    rf"{_END}|(?P<c4>{SHARE})(?=\)))"
)
_BY = r"(?: by| um| en| de| d['’])?"
CHANGES = tuple(
    re.compile(pattern)
    for pattern in (
        rf"(?:(?P<w5>{_UP}|{_DOWN})(?: {_WORD}){{0,3}}? )?{_PAIR}{_DELTA}",
        rf"(?<!\w)(?P<w5>{_UP}|{_DOWN}|up|down|(?:{_NOUN})(?: of| von| um| de))(?: {_WORD})?{_BY}"
        rf" ?{_HEDGE}(?P<c5>{_N}){_steps(2)},? {_PAIR}",
        rf"(?<!\w)(?P<w5>{_UP}|{_DOWN}|up|down)(?: by)? {_HEDGE}(?P<c5>{_N}){_steps(1)}"
        rf" to {_HEDGE}(?P<b>{_N}){_steps(2)},? from {_HEDGE}(?P<a>{_N})",
        rf"(?<!\w)(?P<w5>{_UP}|{_DOWN})(?: {_WORD}){{0,3}}? {_PAIR}",
        rf"{_PAIR} (?:um {_HEDGE}(?P<c5>{_N}){_steps(1)} )?(?P<w5>{_UP}|{_DOWN})(?!\w)",
        rf"(?P<b>{_N}){_steps(4)},? (?P<w5>up|down) from {_HEDGE}(?P<a>{_N}){_steps(5)}{_DELTA}",
        rf"(?P<b>{_N}){_steps(3)} (?:against|versus|vs\.?|compared (?:with|to)|gegenüber|frente a"
        rf"|contre) (?P<a>{_N}){_steps(5)}{_DELTA}",
        rf"(?P<a>{_N}){_steps(1)} ?(?:→|->|⟶) ?(?P<b>{_N}){_steps(2)}{_DELTA}",
        r"(?<!\w)(?P<v>leads?|led|wins?|won|beats?|ahead|führt|gewann|ganó|gagne)"
        rf"(?: {_WORD}){{0,5}}? (?:by|mit|por|de) (?P<c5>{NUMBER}){_steps(1)},"
        rf" (?P<a>{NUMBER})(?: to |[-–])(?P<b>{NUMBER})(?!\w)",
    )
)
_DURATION = (
    rf"(?: ?[,;(–—]{{1,2}} ?){_TELLS}{_ARTICLE}(?:in all |in total |lasting |a total of )?{_HEDGE}"
    rf"(?P<c0>{NUMBER}){_steps(1)}(?=[),.;]|$)"
)
MOMENTS = tuple(
    re.compile(pattern.replace("§", sign))
    for sign in (ON, AT)
    for pattern in (
        rf"(?<!\w)(?:from|von|vom|de|del|du) {_DET}(?:{_WORD} )?(?P<a>§){_steps(2)},?"
        rf" (?:to|until|bis|zum|a|al|au|à|hasta)(?: zum)? {_DET}(?:{_WORD} )?(?P<b>§){_DURATION}",
        rf"(?<!\w)(?P<w5>slip(?:s|ped)|moved|delayed|postponed|pushed|deferred|extended|verschoben"
        rf"|verschiebt sich|aplazado|retrasado|reporté|décalé)(?: {_WORD}){{0,3}}?{_BY}"
        rf" {_HEDGE}(?P<c5>{NUMBER}){_steps(2)},? (?:from|vom|von|del|du|de) (?:{_WORD} ){{0,2}}"
        rf"(?P<a>§){_steps(1)} (?:to|auf|bis|al|a|au|à)(?: den)? (?:{_WORD} ){{0,2}}(?P<b>§)",
        rf"(?P<b>§), {_HEDGE}(?P<c5>{NUMBER}){_steps(1)} (?P<w5>later|earlier|after|before|später"
        rf"|früher|nach|vor|después|antes|après|avant|plus tard|plus tôt)"
        rf"(?: than| als| de| que)? {_DET}(?P<a>§)(?!\w)",
        rf"(?P<a>§)(?: {_WORD}){{0,5}},? (?:and|und|y|et)(?: {_WORD}){{1,4}} (?P<b>§),"
        rf" {_HEDGE}(?P<c5>{NUMBER}){_steps(1)} (?P<w5>later|später|después|más tarde|plus tard)",
        rf"(?<!\w)(?P<c5>{NUMBER}){_steps(2)} (?:between|zwischen|entre)(?: {_WORD}){{0,2}}"
        rf" (?P<a>§)(?: {_WORD}){{0,2}} (?:and|und|y|et)(?: {_WORD}){{0,3}}? (?P<b>§)",
    )
)
_OF = (
    r"(?:(?:out )?of(?: (?:the|its|your|their|our|all|all the|a total of|a possible))?"
    r"|von(?: (?:den|der|insgesamt|ihren))?|de (?:los|las|un total de|sus)|sur(?: les)?|des)"
)
_SAYS = (
    r"(?:i\.e\.|that is|that['’]s|or|which is|d\. ?h\.|also|es decir|o sea|soit|c['’]est-à-dire)"
)
_THAT_IS = (
    r"(?:which (?:is|was|makes up|represents)|that is|that['’]s|das (?:sind|ist|entspricht)|lo que"
    r" (?:es|supone|representa)|ce qui (?:fait|représente)|soit)"
)
SHARES = tuple(
    re.compile(pattern)
    for pattern in (
        rf"(?P<a>{NUMBER}){_steps(6)}, {_THAT_IS} (?:an? |el |un )?{_HEDGE}(?P<c0>{SHARE})"
        rf" (?:of|von|der|des|de|del)(?: {_WORD}){{0,2}} (?P<b>{NUMBER})",
        rf"(?P<a>{NUMBER})(?: {_WORD}){{0,2}} {_OF} (?P<b>{NUMBER}){_steps(4)}"
        rf" ?\({_SAYS}?,? ?{_HEDGE}(?P<c0>{SHARE})\)",
        rf"(?P<a>{NUMBER})(?: {_WORD}){{0,2}} {_OF} (?P<b>{NUMBER}){_steps(4)}(?:,| –| —) {_SAYS}"
        rf",? {_HEDGE}(?P<c0>{SHARE})(?=[,.;)]|$)",
        rf"(?P<c0>{SHARE}){_steps(2)} \((?P<a>{NUMBER})(?: {_WORD}){{0,1}} {_OF} (?P<b>{NUMBER})"
        rf"{_steps(2)}\)",
    )
)
FRACTION_WORDS = {
    50: "(?:one |a )?half|die hälfte|la mitad|la moitié",
    33: "(?:a|one)[ -]third|ein drittel|un tercio|un tiers",
    67: "two[ -]thirds|zwei drittel|dos tercios|(?:les )?deux tiers",
    25: "(?:a|one)[ -]quarter|ein viertel|un cuarto|un quart",
    75: "three[ -]quarters|drei viertel|tres cuartos|(?:les )?trois quarts",
    20: "(?:a|one)[ -]fifth|ein fünftel|un quinto|un cinquième",
}
FRACTION_SAID = re.compile(rf"(?<!\w)(?:{'|'.join(FRACTION_WORDS.values())})(?!\w)")
FRACTION = re.compile(
    rf"(?P<a>{NUMBER})(?: {_WORD}){{0,2}} {_OF} (?P<b>{NUMBER}){_steps(4)}(?:,| –| —| \()"
    rf" ?{_SAYS},? {_HEDGE}(?:"
    + "|".join(f"(?P<f{share}>{words})" for share, words in FRACTION_WORDS.items())
    + r")(?=[,.;)]|$)"
)
_PLUS = r"(?:\+|plus|más)"
LESS = r"(?:minus|less|[-−–]|menos|moins|abzüglich)"
_TERMS = (
    rf"(?P<terms>{NUMBER}{_steps(4)},? {_PLUS} {NUMBER}{_steps(4)}"
    rf"(?:,? (?:{_PLUS}|{LESS}|and|und|y|et) {NUMBER}{_steps(4)}){{0,4}})"
)
_LISTED = (
    rf"(?P<terms>{NUMBER}{_steps(3)}(?:, {NUMBER}{_steps(3)}){{0,4}},?"
    rf" (?:and|und|y|et) {NUMBER}{_steps(3)})"
)
_IN_ALL = (
    r"(?:in all|in total|altogether|total|all told|insgesamt|zusammen|en total|au total|en tout)"
)
_COMES_TO = (
    r"(?:so|making|which (?:makes|comes to|gives)|giving|for a total of|totall?ing|comes? to|makes?"
    r"|equals|adds up to|ergibt|macht|ergeben|machen|also|insgesamt|zusammen|son|suman|es decir"
    r"|en total|soit|donc|font|fait|au total|=)"
)
SUMS = tuple(
    re.compile(pattern)
    for pattern in (
        rf"(?P<c0>{NUMBER}){_steps(5)}: (?P<terms>{NUMBER}{_steps(4)}(?: \([^()]{{0,60}}\))?"
        rf"(?:,? (?:{_PLUS}|{LESS}) {NUMBER}{_steps(3)}(?:,? (?:and|und|y|et) {NUMBER}{_steps(3)})?"
        rf"){{1,3}})(?=[.;]|$)",
        rf"(?P<c0>{NUMBER}){_steps(6)} ?\({_TERMS}\)",
        rf"(?P<c0>{NUMBER}){_steps(3)} {_IN_ALL}(?: \(|: ){_LISTED}(?=\)|$)",
        rf"{_TERMS},? {_COMES_TO}(?: {_WORD}){{0,2}} {_HEDGE}(?P<c0>{NUMBER})",
        rf"{_LISTED},? (?:for )?{_HEDGE}(?P<c0>{NUMBER}){_steps(1)} {_IN_ALL}",
    )
)
_LEFT = r"(?:left|remain\w*|to go|to spare|unspent|unused|übrig|frei|restant\w*|libres?|de reste)"
RESTS = tuple(
    re.compile(pattern)
    for pattern in (
        rf"(?P<terms>{NUMBER}{_steps(4)},? {LESS} (?:the |its |your )?{NUMBER}{_steps(4)})"
        rf",? (?:leaves|leaving|makes|gives|is|equals|so|ergibt|macht|ist|bleiben|da|deja|quedan|es"
        rf"|donne|laisse|reste|soit|=)(?: {_WORD}){{0,2}} {_HEDGE}(?P<c0>{NUMBER})",
        rf"(?P<b>{NUMBER})(?: {_WORD}){{0,1}} {_OF} (?P<a>{NUMBER}){_steps(5)}(?:, or {SHARE})?"
        rf",? (?:so|with|leaving|which leaves|and|damit|es|also|por lo que|donc|il)"
        rf"(?: {_WORD}){{0,3}}? {_HEDGE}(?P<c0>{NUMBER}){_steps(2)} {_LEFT}(?!\w)",
        rf"(?P<b>{NUMBER})(?: {_WORD}){{0,1}} {_OF} (?P<a>{NUMBER}){_steps(4)},?"
        rf" (?:short by|leaving) {_HEDGE}(?P<c0>{NUMBER})",
        rf"(?P<c0>{NUMBER}){_steps(1)} (?:left|remaining) of (?:the |its |your )?(?P<a>{NUMBER})"
        rf"{_steps(2)} after (?:{_WORD} ){{0,3}}(?P<b>{NUMBER})",
    )
)
COUNT_WORDS = {
    word: number
    for number, words in enumerate(
        (
            "two both zwei beide dos deux",
            "three drei tres trois",
            "four vier cuatro quatre",
            "five fünf cinco cinq",
            "six sechs seis",
        ),
        start=2,
    )
    for word in words.split()
}
_COUNT = rf"(?:(?P<a>{NUMBER})|(?P<n>{'|'.join(COUNT_WORDS)}))"
_EACH = (
    r"(?:each|apiece|per (?:night|day|person|ticket|item|month|unit|piece|seat|head|hour)"
    r"|an? (?:night|day|month|piece|head)|pro (?:nacht|tag|person|stück|monat)|je nacht|jeweils"
    r"|(?:por|la|cada) (?:noche|uno|una|día|persona)|cada (?:uno|una)|par (?:nuit|jour|personne)"
    r"|la nuit|chacune?)(?: with fees)?"
)
PRODUCTS = tuple(
    re.compile(pattern)
    for pattern in (
        rf"(?P<a>{NUMBER}){_steps(3)} (?:at|zu|für|a|à) (?P<b>{NUMBER}){_steps(1)} {_EACH}"
        rf"(?:,|, so| \(| –) ?{_HEDGE}(?P<c0>{NUMBER}){_steps(1)} {_IN_ALL}",
        rf"(?P<b>{NUMBER})(?: {_WORD})? {_EACH},? (?:so )?(?P<c0>{NUMBER})(?: in total)?"
        rf" (?:for (?:all|the)|für (?:alle|die)|para l[oa]s|pour les) {_COUNT}(?!\w)",
        rf"(?P<c0>{NUMBER})(?: in total| total)? for (?:all )?{_COUNT}(?: {_WORD}){{0,2}}"
        rf" at (?P<b>{NUMBER})(?: {_WORD})? {_EACH}",
    )
)
CUES = frozenset(
    """
    from von vom auf um de d to compared against versus vs gegenüber contre up down by of out sur
    later earlier than between zwischen entre später früher después antes après avant
    leads lead led wins win won beats beat ahead führt gewann ganó gagne
    plus minus less más menos moins total altogether all insgesamt zusammen tout
    left remaining leaving leaves each per apiece je pro jeweils cada par chacun chacune
    """.split()
)
ARROW = re.compile(r"→|->|⟶")
# What is not claimed, and what numbers do not grow in: a lower place is a better one.
SILENT = re.compile(
    r"\?|\b(?:not|never|nicht|nie|kein\w*|pas|jamais|nunca|no longer|if|wenn|falls|whether"
    r"|instead|rather|unless|shall|should|don['’]t|isn['’]t|wasn['’]t|typo|wrong|incorrect)\b|n['’]t\b"
)
RANKED = re.compile(
    r"\b(?:rank\w*|place|position|spot|seed|number|no|tier|level|version|rang|platz|puesto|place"
    r"|posición|grade|stage|chapter|page|row|rain\w*|snow\w*|yen|dollar|euro|pound|exchange)\b"
)
TRAVEL = re.compile(
    r"\b(?:fl(?:y|ies|ight|ights|ew)|depart\w*|arriv\w*|land\w*|takes? off|flug\w*|abflug|ankunft"
    r"|fliegt|vuel[oa]s?|vols?|lleg\w*|sale|atterri\w*|utc|gmt|[cp][es]t|[cem]est|[ep][sd]t|local"
    r"|ortszeit|heure locale|hora local|time ?zone|working|business|arbeits\w*|werktag\w*|hábiles"
    r"|laborables|ouvr\w+|ouvrés)\b"
)
NOT_PLAIN = re.compile(
    r"\b(?:tax\w*|discount\w*|voucher\w*|coupon|off|before|surcharge|deposit|rabatt|steuer\w*|tasas?"
    r"|impuestos?|including|incl|excluding|excl|save\w*|back|refund\w*|service|cleaning)\b"
)
OFTEN = re.compile(
    r"\b(?:once|twice|times|daily|per|each|an? (?:day|week|month|year|night|hour)|every|pro|je|cada"
    r"|par|mal|veces|fois|al (?:día|mes))\b"
)
RATE_NAME = re.compile(r"\b(?:per|an?|pro|je|por|la|cada|par) (?P<name>[^\W\d_])")
RATES = re.compile(r"\b(?:each|per|an? night|every|weekly|monthly|extra|je|pro|cada|chacune?)\b")
FEES = re.compile(r"\bplus\b|\bfees?\b(?<!each with fees)")
IS_LEFT = re.compile(rf"\b{_LEFT}\b")
CODE_BEFORE = re.compile(rf"(?<![^\W_])(?:us|ca|au|{'|'.join(sorted(CODES))}) ?$", re.IGNORECASE)
MARKS = re.compile(rf"[*`{re.escape(SIGNS)}]|° ?[cf](?!\w)")
THOUSANDS = re.compile(r"[1-9]\d{0,2}[.,]\d{3}")
A_YEAR = re.compile(r"(?:19|20)\d\d")
QUARTER = re.compile(r"[qQhH][1-4]")
NOUN_AFTER = re.compile(rf"[ -]({_WORD})")
NO_NOUN = frozenset(
    """
    from to and per for since over on at this last next compared in by or is was the a an as with
    after before between overall more less von auf um im am und seit gegenüber de a en el la un y
    del desde à et par sur depuis le les une million billion percent points total
    """.split()
)
