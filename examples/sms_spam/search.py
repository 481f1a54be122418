"""What to search and how to score it: a spam filter for SMS messages.

    dibs run examples/sms_spam/search.py --store ./studies --study sms-spam --trials 60 --workers 4

`space`, `goal` and `objective` are all that dibs asks of a file. The score is the log loss on messages whose
text the model has never seen; always answering with the base rate scores 0.39.
"""

from __future__ import annotations

import sys
from pathlib import Path

from sklearn.feature_extraction.text import TfidfVectorizer
from sklearn.linear_model import LogisticRegression
from sklearn.metrics import log_loss
from sklearn.naive_bayes import MultinomialNB
from sklearn.pipeline import make_pipeline

import dibs
from dibs import Choice, Float, Int

sys.path.insert(0, str(Path(__file__).parent))  # a worker is a fresh process that may start anywhere
from messages import load

goal = "min"
space = dibs.Space(
    analyser=Choice("word", "char_wb"),
    words=Int(1, 3, when={"analyser": ["word"]}),  # n-grams of 1..words words
    chars=Int(3, 5, when={"analyser": ["char_wb"]}),  # n-grams of 2..chars characters, inside words
    min_df=Int(1, 5),  # drop what fewer messages contain
    sublinear_tf=Choice(True, False),
    model=Choice("logistic", "bayes"),
    C=Float(0.1, 10_000.0, log=True, when={"model": ["logistic"]}),  # the larger, the less regularised
    alpha=Float(0.001, 1.0, log=True, when={"model": ["bayes"]}),  # the larger, the smoother
)


def objective(trial: dibs.Trial) -> float:
    """Log loss on the validation messages, in nats; lower is better."""
    point = trial.point
    train, validation = load()
    model = make_pipeline(
        TfidfVectorizer(
            analyzer=point["analyser"],
            ngram_range=(1, point["words"]) if point["analyser"] == "word" else (2, point["chars"]),
            min_df=point["min_df"],
            sublinear_tf=point["sublinear_tf"],
        ),
        LogisticRegression(C=point["C"], solver="liblinear", max_iter=1000)
        if point["model"] == "logistic"
        else MultinomialNB(alpha=point["alpha"]),
    )
    model.fit([message.text for message in train], [message.spam for message in train])
    chance_of_spam = model.predict_proba([message.text for message in validation])[:, 1]
    return float(log_loss([message.spam for message in validation], chance_of_spam))
