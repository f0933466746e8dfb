"""The joined table of a reading-time study, and a script for R that fits models to it."""

from __future__ import annotations

import json
import re
from collections.abc import Sequence

import numpy as np

from treelm.tasks.evaluate.reading_times import ReadingTable, base_predictors

#: Columns of every joined table, before the predictors.
KEYS = ("item", "zone", "sentence", "reader", "word", "log_time", "unknown")


def column_name(name: str) -> str:
    """Return what the surprisal of a model is called in tables: a name that R takes as it is.

    Examples:
        >>> column_name("5-gram")
        'surprisal_5_gram'
    """
    return "surprisal_" + re.sub(r"\W", "_", name, flags=re.ASCII)


def joined_table(table: ReadingTable) -> str:
    """Return a table with all keys, tab-separated and without quotes; ``NA`` where none is known.

    Args:
        table: Words with times and predictors, which are not scaled.
    """
    columns = [
        table.texts or table.items.tolist(),
        table.zones.tolist(),
        (table.sentences + 1).tolist(),
        [reader or "NA" for reader in table.readers],
        table.words,
        table.log_times.tolist(),
        table.unknown.astype(np.int64).tolist(),
        *(values.tolist() for values in table.predictors.values()),
    ]
    lines = ["\t".join([*KEYS, *table.predictors])]
    lines += ["\t".join(map(str, row)) for row in zip(*columns, strict=True)]
    return "\n".join(lines) + "\n"


def r_script(
    table: ReadingTable, models: Sequence[str], over: Sequence[str], table_name: str
) -> str:
    """Return a script for R that reads the joined table and fits what treelm fits, and more.

    Args:
        table: What the joined table has.
        models: Columns of the surprisal of models.
        over: Columns of the surprisal of the baseline.
        table_name: Name of the table, in the folder of the script.
    """
    base = table.labels(base_predictors(table, over))
    formulae = {
        model: " + ".join([*base, *table.labels([model])]) for model in models if model not in over
    }
    names = sorted({*base, *(label for model in models for label in table.labels([model]))})
    random = (
        {model: f"(1 + {model} | reader) + (1 | item:zone)" for model in formulae}
        if table.has_readers
        else dict.fromkeys(formulae, "(1 | item)")
    )
    lines = [
        "# Fits models of reading times to the table beside this script, which treelm wrote.",
        "# Run it with: Rscript THIS_FILE, or source() it. lme4 and brms are used where installed.",
        "",
        'script <- sub("^--file=", "", grep("^--file=", commandArgs(FALSE), value = TRUE))',
        'folder <- if (length(script) == 1) dirname(script) else "."',
        f"path <- file.path(folder, {json.dumps(table_name)})",
        'words <- read.delim(path, quote = "", comment.char = "", encoding = "UTF-8")',
        "words$item <- factor(words$item)",
        "words$zone <- factor(words$zone)",
        "words$reader <- factor(words$reader)",
        "# As treelm scales: mean 0, and variance 1 with the divisor n.",
        "scaled <- function(x) (x - mean(x)) / sqrt(mean((x - mean(x))^2))",
        f"predictors <- c({', '.join(map(json.dumps, names))})",
        "words[predictors] <- lapply(words[predictors], scaled)",
        "known <- words[words$unknown == 0, ]",
        "",
        f"base <- {json.dumps(' + '.join(base))}",
        "added <- c(",
        ",\n".join(f"  {model} = {json.dumps(terms)}" for model, terms in formulae.items()),
        ")",
        "random <- c(",
        ",\n".join(f"  {model} = {json.dumps(terms)}" for model, terms in random.items()),
        ")",
        _BODY,
    ]
    return "\n".join(lines)


_BODY = """
formula_of <- function(...) as.formula(paste("log_time ~", paste(c(...), collapse = " + ")))

compare <- function(data, name) {
  readers <- if (nlevels(droplevels(data$reader)) > 1) "reader" else NULL
  smaller <- lm(formula_of(base, readers), data)
  larger <- lm(formula_of(added[[name]], readers), data)
  cat(sprintf("%s: lm, n %d, delta log likelihood %.6f\\n", name, nrow(data),
              as.numeric(logLik(larger) - logLik(smaller))))
  print(summary(larger)$coefficients[name, ])
  print(anova(smaller, larger))
  if (requireNamespace("lme4", quietly = TRUE)) {
    control <- lme4::lmerControl(optimizer = "bobyqa")
    smaller <- lme4::lmer(formula_of(base, random[[name]]), data, REML = FALSE, control = control)
    larger <- lme4::lmer(formula_of(added[[name]], random[[name]]), data, REML = FALSE,
                         control = control)
    cat(sprintf("%s: lmer, log likelihood %.6f, delta %.6f\\n", name, as.numeric(logLik(larger)),
                as.numeric(logLik(larger) - logLik(smaller))))
    print(summary(larger)$coefficients[name, ])
    print(lme4::VarCorr(larger))
    print(anova(smaller, larger))
  }
}

for (name in names(added)) {
  cat("== all words\\n")
  compare(words, name)
  cat("== words that all models know\\n")
  compare(known, name)
}

# The same as a Bayesian model; it takes minutes to hours, so it is run only if asked for:
# Rscript THIS_FILE --brms
if ("--brms" %in% commandArgs(TRUE) && requireNamespace("brms", quietly = TRUE)) {
  for (name in names(added)) {
    print(brms::brm(formula_of(added[[name]], random[[name]]), data = words,
                    prior = brms::set_prior("normal(0, 1)", class = "b"), seed = 1))
  }
}
"""
