"""Arithmetic in words: each pair says the same, first with the outcome that its numbers have."""

import pytest
from tests.lines import lines_run
from tests.unit.grounding.asking import statements

from callmark.grounding.reading import read_stated
from callmark.grounding.spans import Outline
from callmark.grounding.values import find_values
from callmark.grounding.worded import find_wrong_steps

PAIRS = [
    # changes
    (
        "Your net pay went from $3,366.20 in April to $3,096.30 in May, a drop of $269.90.",
        "Your net pay went from $3,366.20 in April to $3,096.30 in May, a drop of $207.90.",
    ),
    ("Usage rose from 161 to 276 kWh.", "Usage rose from 161 to 76 kWh."),
    ("Open tickets fell from 150 to 120.", "Open tickets fell from 120 to 150."),
    (
        "Rent went from €900 to €990, an increase of 10%.",
        "Rent went from €900 to €990, an increase of 20%.",
    ),
    (
        "Rent went from €990 to €900, a decrease of €90.",
        "Rent went from €990 to €900, an increase of €90.",
    ),
    (
        "Revenue grew by $12,400 from $80,000 to $92,400.",
        "Revenue grew by $21,400 from $80,000 to $92,400.",
    ),
    ("Signups climbed from 640 to 832 (+30%).", "Signups climbed from 640 to 832 (+13%)."),
    (
        "Latency dropped from 420 ms to 315 ms (-25%).",
        "Latency dropped from 420 ms to 315 ms (-52%).",
    ),
    ("Price: $45 → $54 (+20%).", "Price: $45 → $54 (+29%)."),
    (
        "We sold 5,491 tickets, up from 4,769 (+722, roughly 15%).",
        "We sold 5,491 tickets, up from 4,769 (+822, roughly 15%).",
    ),
    (
        "Revenue was €80,794 against €69,078, an increase of €11,716.",
        "Revenue was €80,794 against €69,078, an increase of €17,116.",
    ),
    ("The fare is up $30 from $129 to $159.", "The fare is up $20 from $129 to $159."),
    ("Approval went from 40% to 44%, up 4 points.", "Approval went from 40% to 44%, up 14 points."),
    (
        "It went from 12 kg to 9 kg, which is 3 kg less.",
        "It went from 12 kg to 9 kg, which is 5 kg less.",
    ),
    (
        "Der Preis stieg von 120 € auf 150 €, ein Anstieg von 25 %.",
        "Der Preis stieg von 120 € auf 150 €, ein Anstieg von 52 %.",
    ),
    ("Die Zahl der Anträge sank von 340 auf 270.", "Die Zahl der Anträge sank von 270 auf 340."),
    (
        "Der Verbrauch ist von 410 auf 470 kWh gestiegen.",
        "Der Verbrauch ist von 470 auf 410 kWh gestiegen.",
    ),
    (
        "Der Umsatz stieg um 4.200 € von 38.100 € auf 42.300 €.",
        "Der Umsatz stieg um 2.400 € von 38.100 € auf 42.300 €.",
    ),
    (
        "El peso ha pasado de 17,2 kg en abril de 2025 a 19,1 kg en enero, un aumento del 11 %.",
        "El peso ha pasado de 17,2 kg en abril de 2025 a 19,1 kg en enero, un aumento del 6 %.",
    ),
    ("Las ventas bajaron de 540 a 480 unidades.", "Las ventas bajaron de 480 a 540 unidades."),
    (
        "El alquiler sube de 850 € a 892 €, un incremento de 42 €.",
        "El alquiler sube de 850 € a 892 €, un incremento de 24 €.",
    ),
    (
        "Le loyer passe de 780 € à 819 €, soit une hausse de 5 %.",
        "Le loyer passe de 780 € à 819 €, soit une hausse de 15 %.",
    ),
    (
        "Le nombre de visites a baissé de 1240 à 980.",
        "Le nombre de visites a baissé de 980 à 1240.",
    ),
    (
        "La facture est passée de 96,40 € à 81,10 €, une baisse de 15,30 €.",
        "La facture est passée de 96,40 € à 81,10 €, une baisse de 13,50 €.",
    ),
    # days and times
    (
        "Delivery has slipped four days, from Thursday 16 to Monday 20 April.",
        "Delivery has slipped three days, from Thursday 16 to Monday 20 April.",
    ),
    (
        "It fired at 12:08, five minutes later than 12:03.",
        "It fired at 12:08, nine minutes later than 12:03.",
    ),
    (
        "The meeting runs from 09:10 to 11:40 (2 h 30 min).",
        "The meeting runs from 09:10 to 11:40 (3 h 30 min).",
    ),
    (
        "The alert fired at 12:03 and resolved at 12:29, just under 26 minutes later.",
        "The alert fired at 12:03 and resolved at 12:29, just under 36 minutes later.",
    ),
    (
        "There are 35 minutes between its 15:05 end and 15:40.",
        "There are 25 minutes between its 15:05 end and 15:40.",
    ),
    # shares
    (
        "1,104 customers churned in Q1, which is 6% of the 18,400 you started January with.",
        "1,104 customers churned in Q1, which is 5% of the 18,400 you started January with.",
    ),
    ("You have used 187 of 250 tickets (74.8%).", "You have used 187 of 250 tickets (84.8%)."),
    (
        "ml has spent $6,843.20 of its $12,000 budget, or 57%.",
        "ml has spent $6,843.20 of its $12,000 budget, or 75%.",
    ),
    ("75% filled (185 of 247).", "57% filled (185 of 247)."),
    (
        "212 of 318 seats are taken, i.e. two thirds.",
        "212 of 318 seats are taken, i.e. three quarters.",
    ),
    ("45 von 60 Plätzen sind belegt, also 75 %.", "45 von 60 Plätzen sind belegt, also 57 %."),
    ("Se han vendido 90 de los 120 pases (75 %).", "Se han vendido 90 de los 120 pases (57 %)."),
    ("Ont répondu 36 sur 48 personnes (75 %).", "Ont répondu 36 sur 48 personnes (57 %)."),
    # sums, rests, products
    (
        "It comes to $85 in all ($70 plus $15 for the bag).",
        "It comes to $95 in all ($70 plus $15 for the bag).",
    ),
    (
        "Your balance is 14.5 days (25 entitlement plus 3 carried over, minus 8.5 taken and 5 planned).",
        "Your balance is 16.5 days (25 entitlement plus 3 carried over, minus 8.5 taken and 5 planned).",
    ),
    (
        "The room is $210 plus $35 for parking, so $245.",
        "The room is $210 plus $35 for parking, so $265.",
    ),
    (
        "You have 12 adults and 7 children, 19 in total.",
        "You have 12 adults and 7 children, 21 in total.",
    ),
    ("$4,800 minus $300 leaves $4,500.", "$4,800 minus $300 leaves $4,800."),
    ("You have used 8 of 20 credits, so 12 left.", "You have used 8 of 20 credits, so 14 left."),
    ("O+ is at 212 of 300, short by 88 units.", "O+ is at 212 of 300, short by 98 units."),
    ("That is $12 left of $50 after spending $38.", "That is $22 left of $50 after spending $38."),
    ("3 nights at €80 each, €240 in total.", "3 nights at €80 each, €280 in total."),
    (
        "The Circle is $54 each with fees, $216 for all four.",
        "The Circle is $54 each with fees, $192 for all four.",
    ),
    ("It is $162 for all three at $54 each.", "It is $192 for all three at $54 each."),
    ("120 € plus 30 € ergibt 150 €.", "120 € plus 30 € ergibt 160 €."),
]

# As models write them: rounded, hedged, with dates, units and currencies, and what is no claim.
TRUE = """
Your net pay went from $3,366.20 in April to $3,096.30 in May, a drop of $269.90, or about 8%.
Rent rises from €1,150 to €1,195 on 1 March 2026, an increase of €45 (3.9%).
Traffic grew from 12.4 million visits in Q1 to 14.1 million in Q2, up 13.7%.
Revenue went from $4.2M in 2023 to $4.9M in 2024, up roughly $700,000.
Churn fell from 5.4% in January to 4.1% in February, a drop of 1.3 percentage points.
The approval rate rose from 40% to 44%, up 10%.
The approval rate rose from 40% to 44%, up 4 points.
The rate was cut from 4.25% to 4.00%, a reduction of 25 basis points.
Delivery slipped four days, from Thursday 16 to Monday 20 April.
The review moved from 3 March to 10 March, one week later.
The alert fired at 12:03 and was resolved at 12:29, about 26 minutes later.
The standup runs from 9:30 to 9:45 (15 minutes).
Your shift is from 09:00 to 17:30 (8 hours).
The flight departs at 09:10 and arrives at 11:40, so it takes from 09:10 to 11:40 (3 h 30 min).
You're free from 1:30 to 4 pm, two and a half hours.
The window is from 22:00 to 02:00 (4 hours).
There are 35 minutes between its 15:05 end and 15:40.
The stay is from 12 May to 15 May (3 nights).
The trip runs from 12 May to 15 May (4 days).
The sale runs from 28 November to 2 December, 5 days.
BTC went from $61,200 to $58,400 (-4.6%).
ETH: $3,120 → $3,244 (+4%).
CPU: 82% → 61% (-21 pts).
Error count 1,204 → 301 (-75%).
Sold 5,491 tickets, up from 4,769 (+722, roughly 15%).
We had 312 signups, down from 390 last week, a decline of 20%.
Revenue was €80,794 against €69,078, an increase of €11,716, or 17%.
Sales came to 1,240 versus 1,180 a year ago, a gain of about 5%.
The median time to issue fell from 27 to 19 days.
The temperature drops from 22 °C to 14 °C, an 8 degree difference.
It warms from 54°F on Monday to 79°F on Friday, about 25 degrees more.
The team went from 14 seats to 20 seats, a gain of 2 rows.
Your rank improved from 15 to 12, up 3 places.
She climbed from place 9 to 4.
The yen fell from 149 to 152 per dollar.
The bug count went from 41 to 38, and the build time from 12 to 9 minutes.
Storage use grew from 1.8 TB to 2.3 TB, a rise of 500 GB.
Weight fell from 82.4 kg to 79.9 kg, a loss of 2.5 kg (3%).
The queue shrank from 1,900 to about 1,200, a drop of nearly 40%.
The price dropped by £15 from £120 to £105.
The fare is up $30 from $129 to $159.
The bill went up 12% from $84.00 to $94.08.
Spend rose by about 2.9%, from $15,250.00 to $15,694.60 (+$444.60).
Costs increased from $1.2 million to $1.26 million, a 5% increase.
The range goes from $120 to $150, a difference of $30.
It was moved from Tuesday 5 May to Friday 8 May.
Deposits went from 980 to 1 240 kWh.
Attendance rose from 1,020 to 1,173, a 15% jump.
The score went from 71 to 78, a gain of 7 points.
Headcount went from 48 to 51 (+3).
Capacity went from 5 GB to 800 MB, a reduction of 84%.
The limit was lowered from $5,000 to $3,500.
The average fell from 4.6 to 4.3 stars.
Prices fell from 9 to 11 am.
Between Monday and Friday the index rose from 4,998 to 5,102, or 2.1%.
Its share rose from 12% to 18%, a 50% increase.
Output rose from 3 to 3.5 million barrels.
Usage went from 300 to 450 minutes, up by half.
1,104 customers churned in Q1, which is 6% of the 18,400 you started January with.
You have used 187 of 250 tickets (74.8%).
ml has spent $6,843.20 of its $12,000 budget, or 57%, with $5,156.80 left.
9 of 12 loads were on time (75%).
That's 75% (9 of 12).
213 of 8,420 players, or about 2.5%.
A total of 1,025 out of 1,250 applications were issued (82%).
We have 3 of 4 approvals (75%), and the last is due on Friday.
12 of 40 rooms, or 30%, are still free.
8 of the 20 seats (40%) are taken.
14 of 60 calls were missed (77% answered).
45 of 60 places are taken (25% free).
212 of 318 seats are taken, i.e. two thirds.
About 130 of 255 units are sold, or half.
50 of 196 invoices are overdue, or about a quarter.
He made 7 of 21 shots, or a third.
500 MB of 2 GB are used (25%).
€40.18 of €105.97 went to charging, or roughly 38%.
The deposit is $300, which is 20% of the $1,500 total.
We received 1,204 responses, which is 48% of the 2,500 invited.
3 of the 5 reviews mention noise (60%).
The plan covers 80% of the first $2,000 (80% of 2,000 is $1,600).
6 of 8 tests pass (75 %), 2 of 8 fail (25 %).
It comes to $85 in all ($70 plus $15 for the bag).
You have 19 days in total: 12 and 7.
You'd pay $129 per night ($119 plus $10 resort fee).
Your balance is 14.5 days (25 entitlement plus 3 carried over, minus 8.5 taken and 5 planned).
You have 14.5 vacation days left: 30.5 in all (27 plus 3.5 carried over), minus 11 taken and 5 booked.
The room is $210 plus $35 for parking, so $245.
The ticket is $54 plus a $6 fee, so $60 each and $240 for four.
Two adults at €18 and one child at €9, €45 in total.
You have 12 adults and 7 children, 19 in total.
There are 4 red, 3 blue and 5 green ones, 12 in all.
The report covers 3 regions and 12 stores, 48 staff in total.
$4,800 minus $300 leaves $4,500.
$1,200 less the $250 deductible is $950.
You have used 8 of 20 credits, so 12 are left.
You have used 8 of 20 credits, with 12 remaining.
12 of 40 seats are reserved, leaving 28 for walk-ins.
12 of 40 seats are reserved and 3 blocked, leaving 25.
O+ is at 212 of 300, short by 88 units.
That leaves 12 left of 50 after selling 38.
She has 5 of 25 days remaining, with 2 left for carry-over.
3 nights at €80 each, €240 in total.
3 nights at €80 each, €252 in total including city tax.
The Circle is $54 each with fees, $216 for all four.
It is $162 for all three at $54 each.
$540 for 3 nights at $180 a night.
4 seats at $48 each, $192 in total before fees.
Two months at $35 a month, $70 in total.
6 licences at $12.50 per month, $75 total.
He leads by 359 votes, 7,417 to 7,058.
Der Preis stieg von 120 € auf 150 €, ein Anstieg von 25 %.
Die Miete steigt von 980 € auf 1.029 €, also um 5 %.
Die Zahl der Anträge sank von 340 im März auf 270 im April, ein Rückgang um rund 21 %.
Der Verbrauch ist von 410 auf 470 kWh gestiegen.
Der Umsatz stieg um 4.200 € von 38.100 € auf 42.300 €.
Die Lieferung hat sich um vier Tage von Donnerstag, 16. April, auf Montag, 20. April verschoben.
Der Kurs fiel von 41,20 € auf 38,90 € (-5,6 %).
Von 60 Plätzen sind 45 belegt, also 75 %.
45 von 60 Plätzen sind belegt (75 %).
18 von 24 Punkten, also drei Viertel.
3 von 12 Bestellungen, d. h. ein Viertel, sind offen.
120 € plus 30 € Versand ergibt 150 €.
500 € minus 120 € ergibt 380 €.
3 Nächte zu 95 € pro Nacht, 285 € insgesamt.
Sie haben 8 von 20 Tagen genommen, damit bleiben 12 übrig.
Die Sitzung dauert von 10:00 bis 11:30 Uhr (90 Minuten).
Die Wartezeit sank von 12 auf 9 Minuten, also um ein Viertel.
Der Bestand ging von 1.250 auf 1.100 Stück zurück, ein Minus von 12 %.
Es wurde um 12.08 Uhr gemeldet, fünf Minuten später als um 12.03 Uhr.
Ha pasado de 17,2 kg en abril de 2025 a 19,1 kg en enero, un aumento del 11 %.
El precio bajó de 1.200 € a 1.080 €, una bajada del 10 %.
Las ventas subieron de 480 a 540 unidades (+12,5 %).
El alquiler sube de 850 € a 892 €, un incremento de 42 €.
Se han vendido 90 de los 120 pases (75 %).
Quedan 12 de 50 plazas tras vender 38.
Ha usado 8 de los 20 créditos, por lo que quedan 12 restantes.
3 noches a 80 € por noche, 240 € en total.
La temperatura baja de 24 °C a 17 °C, una diferencia de 7 grados.
El pedido pasa del 3 de mayo al 6 de mayo (3 días).
Hay 12 adultos y 7 niños, 19 en total.
120 € más 30 € de envío son 150 €.
Le loyer passe de 780 € à 819 €, soit une hausse de 5 %.
Le nombre de visites a augmenté de 980 à 1 240.
Le nombre de visites a baissé de 1 240 à 980, soit une baisse de 21 %.
La facture est passée de 96,40 € à 81,10 €, une baisse de 15,30 € (environ 16 %).
36 sur 48 personnes ont répondu (75 %).
Il reste 12 places sur 50, soit 24 %.
3 nuits à 80 € par nuit, 240 € au total.
La réunion dure de 14 h à 15 h 30 (1 h 30).
120 € plus 30 € de port font 150 €.
Le délai est passé de 12 à 9 jours, soit 25 % de moins.
Le prix a grimpé de 1 350 € à 1 485 € (+10 %).
Vous avez utilisé 8 des 20 crédits, il en reste 12 de reste.
If it went from 100 to 120, that would be a gain of 30%.
It did not rise from 100 to 80; it fell from 100 to 80.
Would you like me to change it from 3 to 5, an increase of 4?
""".strip().splitlines()


def wrong_in(text: str) -> list[str]:
    values = read_stated(text, find_values(text), None)
    return [one.because for one in find_wrong_steps(Outline(text), values)]


@pytest.mark.parametrize("text", [right for right, _ in PAIRS])
def test_what_comes_to_what_is_said_is_not_flagged(text):
    assert wrong_in(text) == []


@pytest.mark.parametrize("text", [wrong for _, wrong in PAIRS])
def test_what_does_not_come_to_it_is(text):
    assert len(wrong_in(text)) == 1


@pytest.mark.parametrize("text", TRUE)
def test_a_true_sentence_is_not_flagged(text):
    assert wrong_in(text) == []


@pytest.mark.parametrize(
    "text",
    [
        "It did not rise from 100 to 80.",
        "Shall I change it from 3 to 5, an increase of 4?",
        "It would go from $100 to $120, a rise of $50.",
        "It went from $100 to €120, a rise of $50.",
        "It went from 5 km to 3 kg, a drop of 9 km.",
        "The flight is from 09:10 to 11:40 (3 h 30 min).",
        "Her rank rose from 15 to 12.",
        "Exchange from 3478699712 → 9844888101: +$167.87",
        "Swap seat 14 → 17 (+$25).",
        "The rate went from 40% to 44%, up 10%.",
        "12 of 40 seats are reserved and 3 blocked, leaving 25.",
        "3 nights at €80 each, €252 in total including tax.",
    ],
)
def test_what_has_another_reading_or_is_not_claimed_is_left_alone(text):
    assert wrong_in(text) == []


def test_a_wrong_step_is_a_miscalculated_statement():
    said = "Your net pay went from $3,366.20 to $3,096.30, a drop of $207.90."
    found = statements(said, {"april": 3366.2, "may": 3096.3})
    assert ("miscalculated", "equation") in {(label, rule) for _, label, rule in found}


def test_the_reason_names_both_numbers_and_what_they_come_to():
    text = "Net pay went from $3,366.20 to $3,096.30, a drop of $207.90."
    assert wrong_in(text) == ["from 3,366.20 to 3,096.30 it is 269.9"]


@pytest.mark.parametrize(
    "part",
    [
        "It went from 5 to 7 kg, a rise of 3 kg. ",
        "from 5 to 7 and from 8 to 9 ",
        "12 plus 13 plus 14 plus 15, ",
        "12 of 40 seats and 13 of 50 rooms, ",
        "from words and words to words and words by ",
    ],
)
def test_four_times_the_text_is_four_times_the_work(part):
    def work(times: int) -> int:
        text = part * times
        values = read_stated(text, find_values(text), None)
        outline = Outline(text)
        return lines_run(lambda: list(find_wrong_steps(outline, values)))

    assert work(160) <= 4.5 * work(40) + 200
