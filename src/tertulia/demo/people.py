"""The people of the café's team, and two bots."""

from dataclasses import dataclass, field
from typing import Final

from tertulia.model.users import Role

HOST: Final = "cafe.example"
DAY: Final = 86400


@dataclass(frozen=True, kw_only=True)
class Person:
    """A person of the team."""

    name: str
    """Their name in the talk, and the local part of their address."""
    full_name: str
    role: Role = Role.MEMBER
    picture: str = ""
    """The name of a picture in `portraits`; empty for the default one."""
    timezone: str = "Europe/Madrid"
    status: tuple[str, str] = ("", "")
    """An emoji's name, and a text."""
    profile: dict[str, str] = field(default_factory=dict)
    """Values by the fields' names."""
    away: int = 60
    """Seconds since they were last online."""
    introduced: bool = False
    """Whether the server prints how to sign in as them."""

    @property
    def address(self) -> str:
        return f"{self.name}@{HOST}"


@dataclass(frozen=True, kw_only=True)
class Program:
    """A bot."""

    name: str
    full_name: str
    picture: str


PRONOUNS: Final = "Pronouns"
AT_THE_CAFE: Final = "At the café"
SINCE: Final = "Here since"
COFFEE: Final = "Drinks"
HINTS: Final = {
    PRONOUNS: "How others speak of you",
    AT_THE_CAFE: "What you look after",
    SINCE: "Your first day",
    COFFEE: "What to put on the counter when you come in",
}
"""The fields of a profile, in order."""


def _profile(pronouns: str, work: str, since: str, drinks: str) -> dict[str, str]:
    return {PRONOUNS: pronouns, AT_THE_CAFE: work, SINCE: since, COFFEE: drinks}


OWNER: Final = Person(
    name="iris",
    full_name="Iris Vidal",
    role=Role.OWNER,
    picture="cat",
    status=("coffee", "at the counter, say hello"),
    profile=_profile("she/her", "Everything that nobody else does", "2017-03-01", "Cortado"),
    introduced=True,
)
PEOPLE: Final = (
    OWNER,
    Person(
        name="marco",
        full_name="Marco Dias",
        role=Role.MODERATOR,
        picture="cup",
        timezone="Europe/Lisbon",
        status=("wrench", "inside the espresso machine"),
        profile=_profile("he/him", "Machines, and the bar", "2018-09-15", "Galão, in a glass"),
        away=240,
        introduced=True,
    ),
    Person(
        name="june",
        full_name="June Okafor",
        picture="loaf",
        timezone="Africa/Lagos",
        profile=_profile("she/they", "Bread and cakes", "2020-01-07", "Tea. Yes, tea."),
        away=30,
        introduced=True,
    ),
    Person(
        name="theo",
        full_name="Theo Baker",
        role=Role.GUEST,
        picture="bean",
        timezone="Europe/London",
        status=("truck", "on the road with your beans"),
        profile=_profile("he/him", "Roaster, down the road", "2021-05-20", "Filter, black"),
        away=5400,
        introduced=True,
    ),
    Person(
        name="lucia",
        full_name="Lucía Fernández",
        role=Role.ADMINISTRATOR,
        picture="lemon",
        profile=_profile("ella", "Numbers, suppliers, the rota", "2017-03-01", "Café con hielo"),
        away=600,
    ),
    Person(
        name="haruka",
        full_name="佐藤 遥",
        picture="wave",
        timezone="Asia/Tokyo",
        status=("book", "読書中"),
        profile=_profile("she/her", "The bar in the evening, latte art", "2022-04-01", "抹茶ラテ"),
        away=7200,
    ),
    Person(
        name="layla",
        full_name="ليلى حداد",
        picture="moon",
        timezone="Asia/Beirut",
        profile=_profile("she/her", "Pastry", "2021-10-11", "قهوة بالهيل"),
        away=900,
    ),
    Person(
        name="arjun",
        full_name="अर्जुन मेहता",
        picture="sun",
        timezone="Asia/Kolkata",
        status=("cooking", ""),
        profile=_profile("he/him", "Lunch", "2023-02-13", "मसाला चाय"),
        away=1500,
    ),
    Person(
        name="minh",
        full_name="Nguyễn Minh Anh",
        picture="leaf",
        timezone="Asia/Ho_Chi_Minh",
        profile=_profile(
            "they/them", "The website, and whatever has a plug", "2022-11-02", "Cà phê"
        ),
        away=200,
    ),
    Person(
        name="oksana",
        full_name="Оксана Мельник",
        picture="flower",
        timezone="Europe/Kyiv",
        profile=_profile("she/her", "Evenings: readings and music", "2022-06-01", "Раф"),
        away=2700,
    ),
    Person(
        name="zola",
        full_name="Zola Nomvula van der Westhuizen",
        picture="mountain",
        timezone="Africa/Johannesburg",
        status=("palm_tree", "away until Monday"),
        profile=_profile("she/her", "The bar in the morning", "2019-08-19", "Flat white"),
        away=3 * DAY,
    ),
    Person(
        name="saga",
        full_name="Saga Åkesson",
        timezone="Europe/Stockholm",
        profile=_profile("she/her", "New! Bar, and learning", "", "Bryggkaffe"),
        away=420,
    ),
    Person(name="pia", full_name="Pia Koch", picture="fish", timezone="Europe/Berlin"),
)
LEFT: Final = "pia"
"""Whose account is deactivated."""
NEW: Final = "saga"
"""Who came a few days ago, and has no picture yet."""
PROGRAMS: Final = (
    Program(name="doorbell", full_name="Doorbell", picture="bell"),
    Program(name="oven", full_name="Oven", picture="oven"),
)
NAMES: Final = frozenset(one.name for one in (*PEOPLE, *PROGRAMS))
