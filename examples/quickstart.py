"""README's script. Start it on as many machines as you like: together they run 40 trials."""

import math

import dibs
from dibs import Choice, Float, Int


def train(lr, layers, opt, momentum=0.0):  # stands in for yours: one loss per epoch
    for epoch in range(10):
        yield (math.log10(lr) + 3) ** 2 + abs(layers - 3) / 8 + (1 - momentum) / 9 + 1 / (epoch + 1)


space = dibs.Space(
    lr=Float(1e-5, 1e-1, log=True),
    layers=Int(1, 8),
    opt=Choice("adam", "sgd"),
    momentum=Float(0, 0.99, when={"opt": ["sgd"]}),  # not in the point otherwise
)

study = dibs.Study("./studies", "quickstart", space, goal="min")  # creates or joins; any folder you all mount
for trial in study.trials(40):  # 40 in the study, over all machines, never more
    with trial:  # an exception in here: this trial failed, with its traceback
        for loss in train(**trial.point):
            if trial.report(loss):  # True: there is a reason to stop
                break
print(study.best().score, study.best().point)
