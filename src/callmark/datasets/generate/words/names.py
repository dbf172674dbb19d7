"""Names of places that do not exist, composed of a stem and an ending.

No name holds another one: a fixture that asks for `contains` must fit one place only."""

NAME_STEMS = (
    "Ald Ash Bark Bel Bern Birk Brad Bren Brom Carl Chel Colm Cors Dag Dal Dorn Drav Dun Egg Elm "
    "Esk Fal Fen Fern Gar Glen Gorm Hal Ham Hark Hol Horn Ing Jarl Keld Kop Kirn Lang Lind Lorn "
    "Mal Marl Mel Mork Nor Oak Ott Pell Quor Rud Rosk Sel Skel Stav Tarn Thor Ull Vel Wex Yar"
).split()
NAME_ENDINGS = (
    "aby acombe adale afell agate ahaven akirk amere anby asted avik aworth beck borough brook "
    "burn by cester cliff cote den dorp ersett ersund estad fjord gard gill ham heim hythe keld "
    "land leigh low marsh minster moor ness pool rigg scar skerry thorpe toft vale "
    "water wick wold wyke"
).split()
QUALIFIERS = ("", "Upper ", "Lower ", "New ", "Old ")

REGION_STEMS = (
    "Aster Balt Calder Cumber Dover Ember Fair Gann Harrow Isel Jasper Kestrel Lanner Lomond "
    "Mersel Nether Nordal Oster Pender Quill Raven Rother Sable Silver Soder Stern Tamar Teviot "
    "Thistle Tolmer Umber Vester Wender Wester Winter Wyver Yarrow Zeller Amber Brecon Cobalt "
    "Drummer Estuar Fallow Granit Heather Juniper Kelpie Linnet Merlin"
).split()
REGION_ENDINGS = ("ia", "land", "mark", "shire", "wald", "feld", "gau", "more", "dale", "holm",
                  "ness", "strand")  # fmt: skip
