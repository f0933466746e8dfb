"""English word lists of the tokenizer: contractions, abbreviations, sentence starters."""

from __future__ import annotations

import re


def _word_set(text: str) -> frozenset[str]:
    return frozenset(text.split())


#: Words that are written as several tokens (lower case), with these tokens.
SPLIT_WORDS = {
    "".join(parts): parts
    for parts in (
        ("'t", "is"),
        ("'t", "was"),
        ("can", "not"),
        ("d'", "ye"),
        ("du", "n", "no"),
        ("gim", "me"),
        ("gon", "na"),
        ("got", "ta"),
        ("lem", "me"),
        ("more", "'n"),
        ("wan", "na"),
    )
}

#: Endings that are cut off the word before them, in lower case.
CLITICS = frozenset({"n't", "'s", "'d", "'m", "'re", "'ve", "'ll"})

#: What may follow an apostrophe that begins a token: clitics left alone by earlier tokenization
#: ...
CLITIC_STEMS = ("s", "d", "m", "t", "re", "ve", "ll")
#: ... and words that lost their first letters.
ELISION_STEMS = (
    *("bout", "cause", "cept", "em", "gainst", "mongst", "n", "neath", "nother", "nough", "nuff"),
    *("pon", "round", "til", "till", "tis", "tude", "twas", "tween", "twill", "twould", "um", "un"),
)

#: Words that lost their last letters and so keep an apostrophe that looks like a closing quote.
CLIPPED_WORDS = (
    *("an'", "comin'", "d'", "darlin'", "doin'", "dunkin'", "feelin'", "fo'", "gettin'", "givin'"),
    *("goin'", "lookin'", "lovin'", "makin'", "mornin'", "nothin'", "o'", "ol'", "playin'"),
    *("runnin'", "sayin'", "somethin'", "takin'", "talkin'", "th'", "thinkin'", "tryin'", "wi'"),
    *("workin'", "yo'"),
)

#: Abbreviations that always have something after them, so they never end a sentence.
NEVER_FINAL = _word_set(
    """
    Adm. Amb. Atty. Brig. Capt. Cmdr. Col. Cpl. Dr. Fr. Gen. Gov. Hon. Lt. Maj. Messrs. Mlle. Mme.
    Mmes. Mr. Mrs. Ms. Mt. Mx. Pfc. Pres. Prof. Pvt. Rep. Reps. Rev. Sen. Sens. Sgt. Spc. Ste.
    Supt. Fig. Figs. Eq. Eqs. Mssrs. Msgr. Pte.
    cf. e.g. eg. i.e. ie. viz. vs. Vs. v. ca. c. approx. esp. incl. resp.
    """
)

#: Abbreviations that may end a sentence; the word after them decides.
SOMETIMES_FINAL = _word_set(
    """
    Jan. Feb. Apr. Jul. Aug. Sep. Sept. Oct. Nov. Dec.
    Tue. Tues. Wed. Thu. Thur. Thurs. Fri.
    Assn. Assoc. Bancorp. Bros. Cia. Cie. Co. Corp. Cos. Ctr. Dept. Dist. Div. Est. Inc. Inst.
    Intl. Ltd. Ltda. Mfg. Natl. Ph.D. Ph. Plc. Pty. Univ. Esq. Jr. Sr.
    Chas. Geo. Jas. Thos. Wm.
    Ave. Bldg. Blvd. Ct. Ft. Hwy. Ln. Pkwy. Pl. Pt. Rd. Rte. Sq. St.
    Ala. Ariz. Ark. Calif. Colo. Conn. Del. Fla. Ga. Ill. Ind. Kan. Kans. Ky. La. Mass. Md. Mich.
    Minn. Miss. Mo. Mont. Neb. Nebr. Nev. Okla. Ont. Ore. Pa. Penn. Que. Tenn. Tex. Va. Vt. Wash.
    Wis. Wisc. Wyo.
    abbr. al. amt. anon. appt. apt. avg. bbl. bros. coll. cont. cwt. dept. ed. eds. est. etc. ext.
    ft. govt. hr. hrs. ibid. lb. lbs. max. mi. min. misc. mo. mos. oz. pkg. pl. qt. qtr. repr.
    rev. sec. seq. sq. tbsp. tel. temp. tr. trans. tsp. univ. yd. yds. yr. yrs.
    """
)

#: Abbreviations only where a number follows; elsewhere ``no.`` and ``art.`` are plain words.
BEFORE_NUMBER = _word_set(
    """
    No. Nos. no. nos. Nr. nr. Art. Arts. art. arts. Bk. bk. Ch. Chs. ch. chs. Ex. ex. Op. op. p.
    Pp. pp. Par. par. Sec. Secs. secs. Vol. Vols. vol. vols. fig. figs. ll. ver.
    Mar. Jun. Mon. Sat. Sun.
    """
)

#: North and south, abbreviations only before the name of a country or a state.
BEFORE_NAME = frozenset({"No.", "So."})
_DIVIDED_NAMES = _word_set(
    """
    Africa African Africans America American Americans Calif California Carolina Carolinas Dakota
    Dakotas Ireland Italy Korea Korean Koreans Rhodesia Vietnam Vietnamese Yemen
    """
)

#: The one abbreviation after which the Treebank writes a second period at the end of a sentence.
DOUBLED_FINAL = frozenset({"U.S."})

#: Capitalized words that, after an abbreviation, begin a sentence much more often than they
#: continue a name.
SENTENCE_STARTERS = _word_set(
    """
    A After All Also Although An And Another Any Are As At Because Before Besides Both But By Can
    Could Despite Did Do Does During Each Earlier Even Every Finally For From Given Had Has Have
    He Her Here His How However I If In Indeed Instead Is It Its Later Many Maybe Meanwhile More
    Moreover Most Much My Neither Never Nevertheless No Nobody None Nor Not Nothing Now Of On Once
    One Only Or Other Others Our Perhaps Separately She Should Since So Some Soon Still Such That
    The Their Then There Therefore These They This Those Though Thus To Today Together Two Unlike
    Until Was We Were What When Where Whether Which While Who Why With Without Would Yes Yesterday
    Yet You Your
    """
)

_ACRONYM = re.compile(r"(?:[^\W\d_]\.){2,}+|(?:[A-Z][a-z]{0,2}+\.){2,}+")


def is_listed(word: str, words: frozenset[str]) -> bool:
    """Return whether a word is in a list, perhaps written in capitals."""
    return word in words or (word.isupper() and word.capitalize() in words)


def after_joiner(word: str) -> str:
    """Return what follows the last hyphen or slash of a word."""
    return word[max(word.rfind("-"), word.rfind("/")) + 1 :]


def keeps_period(word: str, following: str) -> bool:
    """Tell whether `word`, which ends in a period, owns it when the sentence continues."""
    tail = after_joiner(word)
    if tail in BEFORE_NAME and following.rstrip(".,;:!?'\")") in _DIVIDED_NAMES:
        return True
    if is_listed(tail, BEFORE_NUMBER):
        return following[:1].isdigit()
    if len(tail) == 2:
        return (tail[0].isupper() and tail != "I.") or tail in NEVER_FINAL
    return (
        is_listed(tail, NEVER_FINAL)
        or is_listed(tail, SOMETIMES_FINAL)
        or _ACRONYM.fullmatch(tail) is not None
    )
