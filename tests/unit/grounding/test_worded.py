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
The gap between the A10 (2 h 53 min) and the A13 (3 h 9 min) is 16 minutes.
Gold rose from $2,310 at 9 am to $2,334 at 4 pm, up about 1%.
Snow fell from 8 to 12 on Friday.
The dose was reduced from 20 mg twice a day to 30 mg once a day.
The bus runs from 6 to 22 and costs €2 more at night.
The company grew from 3 people in 2019 to 2 offices and 120 people today.
You moved from plan 12 to plan 8, saving $15 a month.
Your ticket moved from row 22 to row 14, up 8 rows.
The percentage fell from 12.5% to 11.9%, a decline of 0.6 points or 4.8%.
Sales rose from 1.2k to 1.5k, up 25%.
Sales rose 8% to $5.4 million from $5.0 million.
Revenue increased 12% to 560 from 500 a year earlier.
Net income fell $2.1 million to $8.4 million from $10.5 million.
Pageviews went up from 45,000 to 61,000, an increase of more than a third.
The fee went from 2.9% + 30¢ to 2.6% + 10¢, a drop of 0.3 points.
It takes 25 minutes from 10:15 to 10:40 on platform 4.
Check-in is from 15:00 to 22:00, with 2 hours' grace.
The stay from 3 May to 7 May (4 nights) costs €480.
The workshop runs from 3 to 5 June (three days).
The course goes from 1 September to 12 December (15 weeks).
The contract ran from 1 January 2024 to 31 December 2024 (366 days).
From 12 to 18 March, 7 days, it was closed.
The deadline was extended by two weeks from 1 March to 15 March.
It was delayed 3 working days from Thursday 16 April to Tuesday 21 April.
At 14:20, 10 minutes after 14:10, it recovered.
She arrived at 10:05 and left at 11:50, 105 minutes later.
It failed at 23:50 and again at 00:20, 30 minutes later.
There's a 2-hour break between 12:00 and 14:00.
3 of the 12 rooms (two of them suites) are free.
5 of 8 tasks (63%) are done, 3 of 8 (38%) open.
2 of 3 servers, or roughly 67%, are up.
1 of 3 disks, i.e. a third, failed.
11 of 30 kids, or about a third, ride the bus.
19 of 40 voted yes, which is just under half.
$1,200 of the $1,500 budget is spent, i.e. 80%, leaving $300.
12 of 15 answered (80% response rate).
12 of 15 (down from 90%) answered.
4.5 out of 5 stars (120 reviews, 88% positive).
Only 2 of 40 seats (rows 3 and 4) remain.
15% (3 of 20) were late, 85% (17 of 20) on time.
40% (2 of 5) of the weekly goal.
The $40 fee, which is 5% of the price, applies to 3 of them.
It weighs 450 g, which is 15% of the 3 kg limit.
The tax is $8.25, which is 8.25% of the $100 subtotal.
You have 3 bags (2 checked plus 1 carry-on).
Total: $310 (2 nights at $140 plus $30 cleaning).
It's $86 for two ($38 plus $5 fee each).
The trip takes 5 h 20 min (4 h 50 min driving plus 30 min breaks).
The trip takes 5.5 hours (4.5 plus 1).
We have 120 seats: 80 in the hall plus 40 on the balcony.
The package is $99: $49 for 2 tickets plus $25 for each extra.
A 2-bed plus a 1-bed, so 3 beds.
5 plus 3 minus 1 is 7.
Base 1,200 plus bonus 300, for a total of 1,500 points.
We sold 3 adult and 2 child tickets, 5 in total, for $61.
Anna (12), Ben (7) and Cleo (9) have 28 points in total.
In 2024, 12 men and 9 women applied, 21 in all.
There are 7 lakes and 3 rivers, 40 km in total.
500 GB minus 120 GB leaves 380 GB.
$1,000 minus 10% is $900.
20 minus 5 gives 15, minus 3 gives 12.
7 of your 25 days are booked and 4 pending, so 14 are left.
14 of 25 are left, so 11 used.
You've used 1.2 GB of 5 GB, so 3.8 GB left.
You've spent about $340 of $500, so roughly $160 left.
You've watched 6 of 10 episodes, so four left.
Three nights at $129 a night, $387 in total.
5 nights at €94.50 per night, €472.50 in total.
2 rooms at €90 per night, €540 in total for 3 nights.
2 tickets at $45 each, $98 in total with fees.
$25 each, $100 for the four of you.
$15 per person, $60 for all 4.
$12 each or $30 for the three.
4 for $20 at $5 each.
€9 for 3 coffees at €3 each.
$200 for 4 nights at $50 a night plus tax.
Das Guthaben sank von 50 € auf 32,50 €, also um 35 %.
Die Quote stieg von 12 auf 15 Prozent, ein Plus von drei Prozentpunkten.
Der Zug fährt von 8:04 bis 10:31 Uhr (2 h 27 min).
Die Temperatur steigt von -3 °C auf 5 °C, ein Anstieg von 8 Grad.
Das sind 12 von 48 Stunden (25 %).
Der Urlaub geht vom 3. bis 17. August (15 Tage).
Der Urlaub geht vom 3. August bis zum 17. August (14 Nächte).
La tasa bajó de 12,5 % a 11,8 %, un descenso de 0,7 puntos.
El vuelo sale a las 10:15 y llega a las 12:45 (2 h 30).
La estancia es del 3 de mayo al 7 de mayo (4 noches).
Las visitas pasaron de 1.250 a 1.500, un 20 % más.
El total es de 150 € (120 € más 30 € de envío).
Le taux est passé de 4,5 % à 3,9 %, soit une baisse de 0,6 point.
Le séjour va du 3 mai au 7 mai (4 nuits).
Le CA est passé de 1,2 M€ à 1,5 M€, soit +25 %.
De 10 h à 12 h 30, soit 2 h 30 de réunion.
12 des 48 places (25 %) sont libres.
Le total est de 150 € (120 € plus 30 € de port).
The temperature rises from -3 °C to 5 °C, up 8 degrees.
The temperature falls from 3 °C to -5 °C.
The loss narrowed from $5.2M to $3.1M, a decline of $2.1M.
It dropped from 1 in 20 to 1 in 50.
The car went from 0 to 100 km/h, 9.8 s.
Orders went from 12 (May) to 18 (June), up 50%.
Orders went from 1,000 to 2,500, up 2.5x.
Orders grew from 1,000 to 3,000, an increase of 3 times.
The index climbed 1.2%, from 5,021.84 to 5,082.10.
The pound fell to $1.25 from $1.27.
Prices increased by 5 to 10%, from $20 to $22.
The plan increased from 10 to 15 GB, up $5 to $25 from $20.
EUR/USD went from 1.0842 to 1.0911 (+0.64%).
The ratio went from 3:1 to 5:1.
The population fell from 1.1 million to about 950,000, a loss of 150,000.
The distance was cut from 12 miles to 15 km.
The average went from $12.40 to $13.02 per order, a 5% increase on 1,300 orders.
The wait dropped from 1 h 20 min to 45 min, a drop of 35 minutes.
The wait dropped from 2 weeks to 5 days.
The wait dropped from 90 minutes to 1 hour.
The call lasted from 10:05 to 10:20, 14 minutes and 40 seconds.
The job ran from 10:05:20 to 10:06:10 (50 s).
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
