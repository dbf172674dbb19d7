"""Results of tools as real ones are shaped, made from a seed: flights, hotels, weather, files, …"""

from __future__ import annotations

import random
from collections.abc import Callable
from datetime import date, timedelta
from typing import Any

Json = Any
_CITIES = ("Lisbon", "Oslo", "Denver", "Nagoya", "Turin", "Bergen", "Porto", "Leeds")


def _day(rng: random.Random) -> str:
    return (date(2024, 3, 1) + timedelta(days=rng.randrange(300))).isoformat()


def _clock(rng: random.Random) -> str:
    return f"{rng.randrange(24):02}:{rng.randrange(0, 60, 5):02}"


def _cents(rng: random.Random, low: int, high: int) -> float:
    return rng.randrange(low * 100, high * 100) / 100


def _several(rng: random.Random, make: Callable[[int], Json]) -> list[Json]:
    return [make(at) for at in range(rng.randrange(2, 7))]


def flights(rng: random.Random) -> Json:
    first = rng.randrange(100, 900)
    return {
        "currency": rng.choice(["USD", "EUR"]),
        "flights": _several(
            rng,
            lambda at: {
                "flight_number": f"HAT{first + at}",
                "date": _day(rng),
                "departure_time": _clock(rng),
                "arrival_time": _clock(rng),
                "price": rng.randrange(60, 900),
                "currency": "USD",
                "duration_minutes": rng.randrange(65, 700),
                "distance_km": rng.randrange(200, 9000),
                "free_wifi": rng.random() < 0.5,
                "refundable_fare": rng.random() < 0.5,
            },
        ),
    }


def hotels(rng: random.Random) -> Json:
    names = rng.sample(_CITIES, 6)
    return {
        "results": _several(
            rng,
            lambda at: {
                "name": f"Hotel {names[at]}",
                "rating": rng.randrange(30, 50) / 10,
                "price": _cents(rng, 60, 400),
                "currency": rng.choice(["EUR", "GBP"]),
                "distance_km": rng.randrange(1, 90) / 10,
                "has_airport_shuttle": rng.random() < 0.5,
                "outdoor_pool": rng.random() < 0.5,
                "check_in": _day(rng),
                "rooms": rng.randrange(13, 400),
            },
        )
    }


def weather(rng: random.Random) -> Json:
    return {
        "city": rng.choice(_CITIES),
        "date": _day(rng),
        "temp_c": rng.randrange(-80, 350) / 10,
        "humidity_percent": rng.randrange(20, 100),
        "wind_speed_kmh": rng.randrange(13, 90),
        "chance_of_rain": rng.randrange(1, 100) / 100,
        "sunrise": _clock(rng),
        "visibility_m": rng.randrange(800, 20000),
    }


def order(rng: random.Random) -> Json:
    first = rng.randrange(1_000_000, 9_000_000)
    return {
        "order_id": f"#W{first}",
        "placed_on": _day(rng),
        "total_amount": _cents(rng, 100, 3000),
        "gift_card_used": rng.random() < 0.5,
        "items": _several(
            rng,
            lambda at: {
                "product_id": f"P{first + at}",
                "price": _cents(rng, 13, 900),
                "weight_kg": rng.randrange(13, 400) / 10,
                "in_stock": rng.random() < 0.5,
            },
        ),
    }


def files(rng: random.Random) -> Json:
    return {
        "folder": "reports",
        "files": _several(
            rng,
            lambda at: {
                "name": f"report_{at}{rng.randrange(100, 999)}",
                "size_mb": rng.randrange(15, 9000),
                "modified": f"{_day(rng)}T{_clock(rng)}:00",
                "downloads": rng.randrange(1, 400) * 1000,
            },
        ),
    }


def city(rng: random.Random) -> Json:
    return {
        "name": rng.choice(_CITIES),
        "population": rng.randrange(1_100_000, 30_000_000),
        "elevation_m": rng.randrange(20, 3000),
        "founded": _day(rng),
        "growth_rate": rng.randrange(10, 90) / 1000,
        "budget": rng.randrange(20, 900) * 1000,
        "districts": _several(
            rng,
            lambda at: {
                "district_name": f"Ward {at + 20}",
                "residents": rng.randrange(2000, 90000),
            },
        ),
    }


def account(rng: random.Random) -> Json:
    return {
        "account": {
            "account_id": f"ACC{rng.randrange(10**6, 10**7)}",
            "balance": _cents(rng, 100, 90000),
            "opened": _day(rng),
            "two_factor_login": rng.random() < 0.5,
            "payments": _several(
                rng,
                lambda at: {
                    "payment_id": f"pay_{rng.randrange(1000, 9999)}",
                    "amount": _cents(rng, 13, 900),
                    "date": _day(rng),
                },
            ),
        }
    }


WORLDS = (flights, hotels, weather, order, files, city, account)


def make_results(seed: int, many: int) -> list[Json]:
    rng = random.Random(seed)
    return [WORLDS[at % len(WORLDS)](rng) for at in range(many)]
