"""States and kinds: what an answer says that something is, against what a field says of it.
`pending` and `completed` exclude each other, whoever uses them; a text of another record, or of
another field, is said of the wrong thing."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Iterator, Sequence
from functools import lru_cache
from itertools import islice
from operator import attrgetter
from typing import NamedTuple

from callmark.grounding import field_words
from callmark.grounding.binding import NEAREST, Binder, words_of_name
from callmark.grounding.cues import Cue
from callmark.grounding.record_fields import find_joined, find_kin
from callmark.grounding.record_tree import (
    Field,
    RecordIndex,
    RecordSubject,
    ResultRecord,
    key_stems,
    key_words,
    served_before,
    stem,
)
from callmark.grounding.spans import Outline, Span
from callmark.grounding.text import STOP_WORDS, Frozen, fold, lower, place_words
from callmark.grounding.values import Value

LONGEST = 40  # characters of a text that is a state or a kind
MOST_WORDS = 4
MOST_FLAGS = 60  # fields of a record that may be named like a state
MOST_FIELDS = 200  # with one state, or one text, that are looked at
FAR = 60  # characters before a state in which its verb stands
_WORD = re.compile(r"[^\W_]+")

# One family a block, one state a line: those of a family exclude each other. A line that begins
# with `>` is reached by way of those before it: what was delivered was shipped.
_FAMILIES = """
pending|in progress|processing|in process|in processing|ongoing|queued|awaiting|unprocessed
    |scheduled|ausstehend|in Bearbeitung|pendiente|pendientes|en curso|en proceso|en attente
    |en cours
completed|complete|finished|finalized|succeeded|successful|done|abgeschlossen|erledigt
    |completado|completada|terminado|terminada|finalizado|finalizada|terminé|terminée|achevé
    |achevée
failed|unsuccessful|fehlgeschlagen|gescheitert|fallido|fallida|échoué|échouée
cancelled|canceled|voided|storniert|abgesagt|cancelado|cancelada|anulado|anulada|annulé|annulée

approved|accepted|granted|validated|genehmigt|bewilligt|validiert|aprobado|aprobada|aceptado
    |aceptada|validado|validada|approuvé|approuvée|accepté|acceptée|validé|validée
pending|under review|in review|awaiting approval|awaiting review|submitted|incomplete|needsAction
    |needs action|no response|in Prüfung|eingereicht|unvollständig|en revisión|pendiente
    |incompleto|incompleta|en attente|en cours d'examen|incomplet|incomplète
rejected|denied|declined|refused|abgelehnt|rechazado|rechazada|denegado|denegada|refusé|refusée
    |rejeté|rejetée
withdrawn|revoked|zurückgezogen|widerrufen|retirado|retirada|retiré|retirée
tentative|tentatively accepted

active|enabled|in force|aktiv|activo|activa|actif
inactive|disabled|deactivated|inaktiv|deaktiviert|inactivo|inactiva|inactif
suspended|paused|on hold|frozen|pausiert|gesperrt|suspendido|suspendida|suspendu|suspendue
expired|lapsed|abgelaufen|caducado|caducada|vencido|vencida|expiré|expirée

open|reopened|offen|abierto|abierta|ouvert|ouverte
closed|resolved|geschlossen|gelöst|cerrado|cerrada|resuelto|resuelta|fermé|fermée|résolu|résolue

unpaid|outstanding|open|due|payable|payment due|awaiting payment|pending payment|unbezahlt|offen
    |impagado|impagada|pendiente de pago|impayé|impayée|à payer
paid|settled|paid in full|bezahlt|beglichen|pagado|pagada|payé|payée|réglé|réglée
overdue|past due|überfällig|en retard de paiement
refunded|erstattet|reembolsado|reembolsada|remboursé|remboursée

processing|preparing|label created|awaiting shipment|not yet shipped|in Vorbereitung
    |en preparación|en préparation
>shipped|dispatched|versandt|verschickt|enviado|enviada|expédié|expédiée
in transit|on its way|on the way|out for delivery|unterwegs|in Zustellung|en tránsito|en camino
    |en reparto|en transit|en route
delivered|zugestellt|geliefert|ausgeliefert|entregado|entregada|entregados|entregadas|livré
    |livrée
returned|zurückgeschickt|retourniert|devuelto|devuelta|devueltos|retourné|retournée

on time|on schedule|pünktlich|puntual|a tiempo|à l'heure
delayed|running late|verspätet|retrasado|retrasada|retardé|retardée|en retard
cancelled|canceled|gestrichen|cancelado|cancelada|annulé|annulée

in stock|available|auf Lager|vorrätig|verfügbar|en stock|disponible
out of stock|sold out|unavailable|backordered|ausverkauft|nicht verfügbar|vergriffen|agotado
    |agotada|no disponible|épuisé|épuisée|en rupture de stock
discontinued

confirmed|bestätigt|confirmado|confirmada|confirmé|confirmée
tentative|provisional|unconfirmed|pending|option|on option|requested|waitlisted
    |on the waiting list|vorläufig|unbestätigt|angefragt|pendiente|provisoire|en attente
cancelled|canceled|storniert|abgesagt|cancelado|cancelada|annulé|annulée

full-time|full time|Vollzeit|tiempo completo|temps plein
part-time|part time|Teilzeit|tiempo parcial|temps partiel
contract|contractor|freelance
internship

published|live|veröffentlicht|publicado|publicada|publié|publiée
draft|Entwurf|borrador|brouillon
archived|archiviert|archivado|archivada|archivé|archivée

verified|verifiziert|verificado|verificada|vérifié|vérifiée
unverified|nicht verifiziert|no verificado|non vérifié

healthy|operational|online|betriebsbereit|operativo|opérationnel
degraded|eingeschränkt|degradado|dégradé
offline|unhealthy|down

passed|success|succeeded|bestanden|aprobado|réussi|réussie
failed|failure|fehlgeschlagen|fallido|échoué|échouée
skipped|übersprungen|omitido|omitida|ignoré

filled|executed|ausgeführt|ejecutado|ejecutada|exécuté|exécutée
accepted|open|working|pending|new|queued
partially filled|teilweise ausgeführt|parcialmente ejecutado
rejected|abgelehnt|rechazado|rejeté
cancelled|canceled|expired

locked|verriegelt|abgeschlossen|cerrado con llave|verrouillé|verrouillée
unlocked|entriegelt|aufgeschlossen|déverrouillé|déverrouillée

nonstop|non-stop|direct|Direktflug
one stop|1 stop|connecting

one-way|one way|einfache Fahrt|solo ida|aller simple
round-trip|round trip|return trip|Hin- und Rückfahrt|ida y vuelta|aller-retour
"""


class KnownState(Frozen, frozen=True):
    """One state of one family; `passed`: those that are over when this one is reached."""

    family: int
    number: int


def _plain(text: str) -> str:
    """`PENDING_DEPOSIT`, `inTransit` and `In transit` in words."""
    return " ".join(_WORD.findall(fold(re.sub(r"(?<=[a-z])(?=[A-Z])", " ", text))))


def _read_families() -> tuple[dict[str, list[KnownState]], set[KnownState]]:
    found: dict[str, list[KnownState]] = {}
    passed: set[KnownState] = set()
    for family, block in enumerate(_FAMILIES.replace("\n    ", "").strip().split("\n\n")):
        for number, line in enumerate(block.split("\n")):
            state = KnownState(family, number)
            if line.startswith(">"):
                passed.add(state)
            for name in line.lstrip(">").split("|"):
                found.setdefault(_plain(name), []).append(state)
    return found, passed


_STATES, _PASSED = _read_families()
STATE_WORDS = frozenset(name.split()[0] for name in _STATES)
_HEAD = re.compile(r"[^\W_]+")


def _match_state(text: str, place: int) -> re.Match[str] | None:
    """A state that is named here, the longest name first."""
    head = _HEAD.match(text, place)
    named = None if head is None else _names_with(lower(head[0]))
    return None if named is None else named.match(text, place)


@lru_cache(maxsize=len(STATE_WORDS))
def _names_with(head: str) -> re.Pattern[str] | None:
    """Those that begin with this word: all of them as one pattern take long at each place."""
    if head not in STATE_WORDS:
        return None
    names = [name for name in _STATES if name.split()[0] == head]
    ordered = (re.escape(name) for name in sorted(names, key=len, reverse=True))
    either = "|".join(name.replace(r"\ ", r"[\s_-]") for name in ordered)
    return re.compile(rf"(?<!\w)(?:{either})(?!\w)", re.IGNORECASE)


# The verb that a state is said with, and the small words between.
_SAID = re.compile(
    r"(?:\b(?:is|are|was|were|remains?|stays?|stands at|(?:marked|listed|shown|shows?|showing"
    r"|recorded)"
    r"(?:\sas)?|ist|sind|war|wurde|wurden|bleibt|steht|está|están|fue|fueron|sigue"
    r"|han?\ssido|est|sont|a été|ont été|reste"
    r"|been|still|already)|['’]s|['’]re|\b(?:status|state)(?:\sis|:)?)"
    r"[\s*_`\"“]*(?:(?:now|still|currently|already|also|both|all|just|fully|officially|showing"
    r"|yet|again"
    r"|been|successfully|bereits|noch|schon|jetzt|derzeit|nun|aktuell|als|ya|aún|todavía"
    r"|actualmente"
    r"|déjà|encore|toujours|actuellement)[\s*_`\"“]+)*$",
    re.IGNORECASE,
)
_HAVE_SAID = re.compile(
    r"(?<!\bi)(?<!\bwe)(?<!\byou)\s(?:has|have)\s(?:(?:both|all|already|now|also|just|since"
    r"|each)\s)*$",
    re.IGNORECASE,
)
_UNSAID = re.compile(
    r"\b(?:if|once|when|whenever|after|before|until|unless|whether|not|no|none|neither|never"
    r"|no longer"
    r"|will|would|can|cannot|could|should|may|might|must|needs?|either|or|any|previously"
    r"|originally|than"
    r"|instead|rather|wenn|falls|sobald|bis|nicht|kein\w*|oder|wird|werden|si|cuando|hasta|nunca"
    r"|será|quand|lorsque|pas|jusqu|sera|aucun\w*|ou|to be|as)\b|n['’]t\b",
    re.IGNORECASE,
)
# What is done is done, whatever became of the thing that it was done to.
_DEED_NOUN = re.compile(
    r"\b(?:actions?|requests?|changes?|updates?|modifications?|upgrades?|exchanges?|returns?|steps?"
    r"|cancell?ations?|adjustments?|corrections?|replacements?|requested|everything|you|i|we"
    r"|stornierung|änderung\w*|cancelación|cambios?|annulation|modification|changements?)\b",
    re.IGNORECASE,
)
# What follows a state that is said, and no part of a noun: not `the processing time`.
_ENDS_HERE = re.compile(
    r"[\s*_`\"”’)\]]*(?:[.,;:!?)|–—]|$|\n|\s-\s|\b(?:it|them|and|but|so|because|since|with|though|while"
    r"|yet|too|as well|also|und|aber|auch|ebenfalls|también|aussi|également"
    r"|weil|y|pero|porque|et|mais|car)\b)",
    re.IGNORECASE,
)
_STATUS_WORDS = frozenset(
    map(
        stem, "status state stage condition availability outcome result response conclusion".split()
    )
)


_MANY_ARE = re.compile(r"\b\d+\s[^\W\d_]+s\s(?:were|are|have been)\s(?:[^\W\d_]+\s)?$", re.I)


class SaidState(NamedTuple):
    """From `start` to `end` the answer says that something is what `field` says it is not."""

    start: int
    end: int
    field: Field


class StateFields:
    """The fields of the results that hold a state that has others which it excludes."""

    def __init__(self, index: RecordIndex) -> None:
        self._fields: dict[int, list[tuple[KnownState, Field]]] = {}
        for text, field in index.tree.text_fields:
            if 3 < len(text) <= LONGEST:
                for state in states_of(text):
                    known = self._fields.setdefault(state.family, [])
                    if len(known) < MOST_FIELDS:
                        known.append((state, field))

    def said_in(
        self, outline: Outline, binder: Binder, turn_at: Callable[[int], int | None]
    ) -> Iterator[SaidState]:
        words = STATE_WORDS & outline.words if self._fields else frozenset[str]()
        end = 0
        for place in outline.places_of(words):
            found = _match_state(outline.text, place) if place >= end else None
            if found is None:
                continue
            end = found.end()
            sentence = outline.sentence_at(found.start())
            if outline.is_proposed(sentence) or not is_stated(outline, found.start(), found.end()):
                continue
            wrong = self._wrong(outline, found, sentence, binder, turn_at(found.start()))
            if wrong is not None:
                yield SaidState(found.start(), found.end(), wrong)

    def _wrong(
        self,
        outline: Outline,
        found: re.Match[str],
        sentence: Span,
        binder: Binder,
        turn: int | None,
    ) -> Field | None:
        """The field that says otherwise, if every field that could be meant does."""
        said = _STATES[_plain(found[0])]
        rows = [
            (state, field)
            for one in said
            for state, field in self._fields.get(one.family, ())
            if field.counts_for(turn)
        ]
        if not rows:
            return None
        place = Value(found.start(), found.end(), "quote", "")
        clause = outline.near(place, outline.clause_at(found.start()))
        if _MANY_ARE.search(outline.text, clause[0], found.start()):
            return None  # `16 departures were scheduled`, of which one was cancelled
        named = _named_in(outline.text, clause, rows)
        meant = named or rows
        if not named and _DEED_NOUN.search(outline.text, *clause):
            return None
        subject = binder.subject_of(place, sentence)
        if subject is not None and subject.distant:
            return None
        if subject is not None:
            own = [row for row in meant if _belongs(row[1], subject)]
            meant = own or (named if len(named) == 1 else [])
        if subject is None and len({(row[1].call, row[1].path) for row in meant}) > 1:
            return None
        agree = {state for state, _ in rows if state in said}
        kept = [field for state, field in meant if excludes(state, said)]
        stems = {stem(word) for word in _WORD.findall(outline.text[slice(*clause)])}
        if any(stem(word) in stems for one in kept for word in _WORD.findall(str(one.value))):
            return None  # `the cancellation is complete`
        if any(_has_flag(field, found[0]) for field in kept):
            return None
        if not kept or len(kept) < len({(row[1].call, row[1].path) for row in meant}):
            return None
        if any(state in said and field.call > kept[0].call for state, field in rows):
            return None  # what was confirmed is cancelled now
        return None if agree and subject is None else kept[0]


def _has_flag(field: Field, state: str) -> bool:
    """`"cancelled": true` of the order whose last payment has `"status": "COMPLETED"`."""
    said = stem(state)
    return any(
        one.value is True and said in map(stem, key_words(one.key))
        for record in (field.record, *field.record.ancestors())
        for one in record.fields[:MOST_FLAGS]
    )


@lru_cache(maxsize=1 << 10)
def states_of(text: str) -> tuple[KnownState, ...]:
    """Of the whole text, and in the other families of its first word: `PENDING_DEPOSIT`."""
    plain = _plain(text)
    found = list(_STATES.get(plain, ()))
    if "_" in text and " " in plain:
        known = {one.family for one in found}
        found += [one for one in _STATES.get(plain.split()[0], ()) if one.family not in known]
    return tuple(found)


def excludes(state: KnownState, said: Iterable[KnownState]) -> bool:
    """Is it another state than any of those that were said, in their family?"""
    same = [one for one in said if one.family == state.family]
    return bool(same) and all(
        one != state and not (one in _PASSED and state.number > one.number) for one in same
    )


def _named_in(
    text: str, clause: Span, rows: Sequence[tuple[KnownState, Field]]
) -> list[tuple[KnownState, Field]]:
    """Those whose key, or whose object, the clause names: `the refund is completed`."""
    words = {stem(word) for word in _WORD.findall(text[slice(*clause)])}
    return [
        row
        for row in rows
        if not words.isdisjoint(
            _names_of(row[1].key, row[1].record.key, tuple(map(_KEY, row[1].record.fields[:40])))
        )
    ]


_KEY = attrgetter("key")


@lru_cache(maxsize=1 << 10)  # records of a kind have their keys in common
def _names_of(key: str, record_key: str, keys: tuple[str, ...]) -> frozenset[str]:
    """What its object is called: by its key, and by `transfer_id` in it."""
    names = {*key_stems(key), *key_stems(record_key)}
    for other in keys:
        words = key_words(other)
        if words[-1:] == ("id",) or words[-1:] == ("number",):
            names.update(key_stems(other)[:-1])
    return frozenset(names - _STATUS_WORDS)


def _belongs(field: Field, subject: RecordSubject) -> bool:
    number = field.record.number
    return any(record.number <= number <= record.last for record in subject.records[:NEAREST])


def is_stated(outline: Outline, start: int, end: int) -> bool:
    """Is it said of something: `is delayed`, `Status: delayed`, `has delayed`?"""
    text = outline.text
    if _ENDS_HERE.match(text, end) is None:
        return False
    before = text[max(outline.line_at(start).start, start - FAR) : start]
    if _SAID.search(before) is None and _HAVE_SAID.search(before) is None:
        return False
    begin = max(outline.clause_at(start)[0], start - FAR)
    return _UNSAID.search(text, begin, start) is None


SHORTEST, LONGEST = 3, 40  # characters of such a text
MOST_OF_TEXT = 60  # with one text; with more of them it tells nothing
MOST_OWN = 4  # texts of one record under one key; with more, which is meant?
LONGEST_RECORD = 10000  # characters; what a longer one tells, nobody looks for
MOST_PARTS = 200  # of a record
LONGEST_SAID = 1000  # characters in which its own text may stand
BESIDE = 30  # characters around a text in which its key is named
_DIGIT = re.compile(r"\d")
# Keys whose texts say many things, or name the record itself.
_FREE = frozenset(
    """
    description text message note notes comment comments body content url link title name id ids
    summary reason currency unit units timezone code sku key token hash version email phone address
    """.split()
)
# What is compared, wished for, left open or changed is not said of a record.
_UNSURE = Cue(
    r"\b(?:from|instead|chang\w+|swap\w*|updat\w+|mov(?:e|ed|ing)|exchang\w+|replac\w+|new"
    r"|previous\w*"
    r"|originally|versus|vs|compared|differen\w+|upgrad\w+|downgrad\w+|convert\w*|switched"
    r"|switching|select\w*|cho[os]s?en?|than|like|unlike|similar|or|either|neither|nor|other"
    r"|others|another|both|every|any|no|not|never|without|if|whether|unless|would|could|should"
    r"|(?<!\d\s)may(?!\s\d)"
    r"|might|prefer\w*|want\w*|ask\w*|request\w*|look\w* for|need\w*|filter\w*|search\w*|near"
    r"|nearby"
    r"|close to|next to|towards|via|rather|except|excluding|besides|eligible|also"
    r"|possible|acceptable|options?|variants?"
    r"|oder|nicht|kein\w*|als|statt|wenn|o|sin|ni|otro|otra|si|ou|pas|sans|autre|que)\b"
    r"|n['’]t\b|->|→|➝|\?",
    """
    from instead chang* swap* updat* mov* exchang* replac* new previous* originally versus vs
    compared differen* upgrad* downgrad* convert* switched switching select* cho* than like
    unlike similar or either neither nor other others another both every any no not never
    without if whether unless would could should may might prefer* want* ask* request* look*
    need* filter* search* near nearby close next towards via rather except excluding besides
    eligible also possible acceptable option options variant variants
    oder nicht kein* als statt wenn o sin ni otro otra si ou pas sans autre que
    """,
    "n't n’t -> → ➝ ?",
)
# What follows one of these is said of what stands before it: `Piranesi, in the Auditorium`.
_SAID_OF = re.compile(
    r"(?:[(\[,–—]|\s-|\b(?:by|with|at|in|on|from|to|for|of|as|via|bei|beim|im|am|an|mit|von|vom|zu|zum|zur"
    r"|aus|als|für|par|chez|avec|à|au|en|de|du|des|dans|pour|con|por|del?|para|a|al))"
    r"(?:\s(?:the|a|an|your|his|her|its|their|der|die|das|dem|den|el|la|los|las|le|les|l['’]))?"
    r"[\s*_`\"“„«]*$",
    re.IGNORECASE,
)
_NO_NOUN = re.compile(
    rf"{_ENDS_HERE.pattern}|['’]s\b"
    r"|\s(?:on|in|at|to|for|from|by|of|until|since|as|too|is|was|am|um|im|bis|seit|auch|en|el|desde"
    r"|hasta|también|à|depuis|aussi)\b",
    re.IGNORECASE,
)
_TOPIC = re.compile(
    r"^\s*(?:[-*•+>]|\d+[.)])\s+(?:the\s(?:\w+\s)?|both\s|die\s(?:\w+\s)?|les\s(?:\w+\s)?|los\s|las\s)?"
    r"[*_]*$|\b(?:two|three|four|five|six|zwei|drei|vier|fünf|sechs|deux|trois|quatre|dos|tres|cuatro)"
    r"\s[*_]*$",
    re.IGNORECASE,
)
_LISTED = re.compile(r"[^\w\n]*(?:\w+[^\w\n]+){0,5}")


class SaidKind(NamedTuple):
    """From `start` to `end` stands the text of `taken`, where `field` has another one. `rule` is
    `field` where both are fields of one record."""

    start: int
    end: int
    field: Field
    taken: Field
    rule: str


class KindFields:
    """The short texts of the results that an answer, of which these are the `words`, may state."""

    def __init__(self, index: RecordIndex, words: frozenset[str]) -> None:
        self._fields: dict[tuple[str, ...], list[Field]] = {}
        self._lengths: dict[str, set[int]] = {}
        columns: dict[str, tuple[str, ...]] = {}
        self._uneven: set[str] = set()  # keys under which different things stand
        for text, field in index.tree.text_fields:
            name = words_of_kind(field.key, text)
            if not name:
                continue
            if columns.setdefault(field.key, name) != name:
                self._uneven.add(field.key)
            if words.issuperset(name):
                known = self._fields.setdefault(name, [])
                if len(known) <= MOST_OF_TEXT:
                    known.append(field)
                self._lengths.setdefault(name[0], set()).add(len(name))
        self._texts: dict[int, str] = {}

    def said_in(
        self, outline: Outline, binder: Binder, turn_at: Callable[[int], int | None]
    ) -> Iterator[SaidKind]:
        for start, end, fields in self._places(outline.text):
            sentence = outline.sentence_at(start)
            turn = turn_at(start)
            fields = served_before(fields, turn)
            # Where nothing else stands under its key, nothing else can be meant.
            is_one_key = len({field.key for field in fields}) == 1 and fields[0].key in self._uneven
            if not is_one_key or len(fields) > MOST_OF_TEXT or outline.is_proposed(sentence):
                continue
            place = Value(start, end, "quote", outline.text[start:end])
            # In `IPX4, blue, not resistant` each is said for itself.
            clause = outline.near(place, outline.clause_at(start))
            is_element = _is_element(outline.text, start, end) and (
                "?" not in outline.text[end : max(sentence[1] + 1, clause[1])]
            )
            around = (start, end) if is_element else clause
            if _is_topic(outline, place) or outline.finds(_UNSURE, *around):
                continue
            subject = _subject(binder, place, sentence)
            if subject is None or subject.distant:
                continue
            found = self._wrong(outline, binder, place, sentence, subject, fields)
            if found is not None:
                yield found

    def _places(self, text: str) -> Iterator[tuple[int, int, list[Field]]]:
        if not self._fields:
            return
        placed = place_words(text)
        words = placed.words
        end = 0
        for at in placed.find(self._lengths.keys()):
            lengths = sorted(self._lengths[words[at]], reverse=True) if at >= end else ()
            for length in lengths:
                fields = self._fields.get(tuple(words[at : at + length]))
                if fields and at + length <= len(words):
                    end = at + length
                    yield placed.starts[at], placed.end_of(end - 1), fields
                    break

    def _wrong(
        self,
        outline: Outline,
        binder: Binder,
        place: Value,
        sentence: Span,
        subject: RecordSubject,
        fields: Sequence[Field],
    ) -> SaidKind | None:
        kin = find_kin(fields, subject)
        if kin is not None or find_joined(fields, subject) is not None:
            return None
        own = [
            one
            for record in subject.records[:NEAREST]
            for one in binder.own_fields(record, fields, widely=False)
            if isinstance(one.value, str)
            and words_of_kind(one.key, one.value)
            and any(_is_same_column(one, other) for other in fields[:NEAREST])
        ]
        if not 0 < len(own) <= MOST_OWN:
            return None
        start, end = outline.near(place, sentence)
        if subject.inherited:  # `PT-10 (Dwayne Ellis)`, over `PT-5 (Carla Nunes)`
            above = outline.line_at(place.start).siblings[-1:]
            start = min([start, *(one[0] for one in above)])
        start = self._from_its_name(binder, subject, (start, place.start))
        said = fold(outline.text[max(start, end - LONGEST_SAID) : end])
        if any(_holds(said, str(one.value)) for one in own):
            return None
        is_category = len(fields) > 1  # other records share it: it says what something is
        if not is_category and not self._is_linked(outline, place, own[0]):
            return None
        if any(self._tells(record, place.text) for record in subject.records[:NEAREST]):
            return None
        return SaidKind(place.start, place.end, own[0], fields[0], "state")

    @staticmethod
    def _from_its_name(binder: Binder, subject: RecordSubject, before: Span) -> int:
        """What stands before the name of the record may be said of another one."""
        own = {one.number for one in subject.records}
        last = binder.mentions_in(before)[-1:]
        starts = [one.start for one in last if any(each.number in own for each in one.records)]
        return max([before[0], *starts])

    def _is_linked(self, outline: Outline, place: Value, field: Field) -> bool:
        """Is it said to be so, or under the name of the field?"""
        line = outline.line_at(place.start)
        start, end = max(line.start, place.start - BESIDE), min(line.end, place.end + BESIDE)
        words = field_words.words_of_key(field.key)
        around = field_words.words_said(outline.text, start, end)
        return (
            not words.isdisjoint(around)
            or is_stated(outline, place.start, place.end)
            or _is_said_of(outline.text, start, place)
        )

    def _tells(self, record: ResultRecord, text: str) -> bool:
        """Does any other text or key of the record speak of it?"""
        known = self._texts.get(record.number)
        if known is None:
            inside = islice(record.within(), MOST_PARTS)
            parts = [one for inner in inside for one in inner.fields[:100]]
            above = [one for inner in record.ancestors() for one in inner.fields[:100]]
            known = " ".join(
                f"{' '.join(key_words(one.key))} {one.value if isinstance(one.value, str) else ''}"
                for one in (*parts, *above)
            )
            known = self._texts[record.number] = fold(known[: LONGEST_RECORD + 1])
        return len(known) > LONGEST_RECORD or _holds(known, text)


def _is_topic(outline: Outline, place: Value) -> bool:
    """At the head of a table or of an item it says what is spoken of, and `the three E-Transit` are
    many."""
    line = outline.line_at(place.start)
    if outline.text.startswith("|", line.start):
        head = outline.table_head(line)
        return head is not None and head.start == line.start
    return _TOPIC.search(outline.text, line.start, place.start) is not None


def _is_same_column(one: Field, other: Field) -> bool:
    """Are they what records of one kind have under one key?"""
    if one.key != other.key or one.record.kind != other.record.kind:
        return False
    if one.record.parent is not None and other.record.parent is not None:
        return one.record.key == other.record.key or one.record.parent is other.record.parent
    keys, others = ({field.key for field in record.fields} for record in (one.record, other.record))
    return 2 * len(keys & others) >= len(keys | others)


def _is_said_of(text: str, start: int, place: Value) -> bool:
    """`in the Auditorium`, `(Mina Park)`; not `(pending order)`, which says what an order is."""
    is_whole = place.text[0].isupper() or _NO_NOUN.match(text, place.end) is not None
    return is_whole and _SAID_OF.search(text, start, place.start) is not None


def _subject(binder: Binder, place: Value, sentence: Span) -> RecordSubject | None:
    """Of several records that are named, only one right before it is meant."""
    subject = binder.subject_of(place, sentence)
    if subject is None or len({tuple(one.names) for one in subject.records}) == 1:
        return subject
    # An item of an order and the same one in a catalogue have other names, too.
    shared = set[str].intersection(*(set(one.names) for one in subject.records))
    is_one = any(any(map(str.isdecimal, name)) for name in shared)
    return subject if is_one else binder.adjacent_to(place, sentence)


@lru_cache(maxsize=1 << 13)
def words_of_kind(key: str, text: str) -> tuple[str, ...]:
    """A few words that are no number, under a key that is no name and no story; else none."""
    words = key_words(key)
    if not words or words[-1] in _FREE or not SHORTEST <= len(text) <= LONGEST:
        return ()
    name = words_of_name(text)
    is_kind = (
        len(name) <= MOST_WORDS
        and not _DIGIT.search(text)
        and text[-1] not in ".!?"
        and any(word not in STOP_WORDS for word in name)
    )
    return name if is_kind else ()


def _is_element(text: str, start: int, end: int) -> bool:
    """Does it stand between two commas, brackets or dashes?"""
    return (
        _BEFORE_ELEMENT.search(text, max(0, start - 4), start) is not None
        and _AFTER_ELEMENT.match(text, end) is not None
    )


_BEFORE_ELEMENT = re.compile(r"[,(;–—/|][ *_]*$")
_AFTER_ELEMENT = re.compile(r"[ *_]*(?:[,);–—|]|$)", re.MULTILINE)


def _holds(text: str, part: str) -> bool:
    """Not within an identifier: `gift_card_8245350`."""
    words = r"[\W_]+".join(map(re.escape, words_of_name(part)))
    return re.search(rf"(?<![^\W_]){words}(?![^\W_]|_\d)", text) is not None
