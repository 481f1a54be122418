#!/bin/sh
# Trains a classifier of flowers: POSIX shell and awk, nothing else.
#
#   train.sh LR DECAY BATCH [--momentum M] [--resume FOLDER]
#
# Prints one JSON line per epoch, the log loss on rows it does not train on, and keeps its weights in ./weights, from
# which a later attempt goes on. Try it by hand: ./train.sh 0.1 1e-4 10
set -eu
data=$(dirname "$0")/iris.csv lr=$1 decay=$2 batch=$3
shift 3
momentum=0 resume=
while [ $# -gt 0 ]; do
  case $1 in
    --momentum) momentum=$2 ;;
    --resume) resume=$2/weights ;;
    *) echo "train.sh: $1 is no option" >&2; exit 2 ;;
  esac
  shift 2
done
# asked to end early: the last epoch's weights are there already, so there is nothing to finish
trap 'exit 0' TERM

awk -F, -v lr="$lr" -v decay="$decay" -v batch="$batch" -v momentum="$momentum" -v resume="$resume" \
  -v seed="${DIBS_SEED:-1}" -v epochs="${EPOCHS:-40}" '
function scores(row,    c, j, top, sum) {           # softmax of the three classes, into p
  top = -1e9
  for (c = 0; c < 3; c++) {
    p[c] = w[c, 0]
    for (j = 1; j <= 4; j++) p[c] += w[c, j] * x[row, j]
    if (p[c] > top) top = p[c]
  }
  sum = 0
  for (c = 0; c < 3; c++) { p[c] = exp(p[c] - top); sum += p[c] }
  for (c = 0; c < 3; c++) p[c] /= sum
}
function loss(    i, total) {                       # mean log loss of the rows that are held out
  total = 0
  for (i = 0; i < held; i++) { scores(out[i]); total -= log(p[y[out[i]]] > 1e-12 ? p[y[out[i]]] : 1e-12) }
  return total / held
}
function step(from, to,    i, row, c, j, g) {       # one batch of the shuffled rows
  for (c = 0; c < 3; c++) for (j = 0; j <= 4; j++) g[c, j] = decay * w[c, j] * (j > 0)
  for (i = from; i < to; i++) {
    row = order[i]
    scores(row)
    for (c = 0; c < 3; c++) for (j = 0; j <= 4; j++) g[c, j] += (p[c] - (y[row] == c)) * x[row, j] / (to - from)
  }
  for (c = 0; c < 3; c++) for (j = 0; j <= 4; j++) { v[c, j] = momentum * v[c, j] - lr * g[c, j]; w[c, j] += v[c, j] }
}
function save(epoch,    c, j) {
  print epoch > "weights.part"
  for (c = 0; c < 3; c++) for (j = 0; j <= 4; j++) print w[c, j], v[c, j] > "weights.part"
  close("weights.part")
  system("mv weights.part weights")
}
BEGIN { rows = classes = held = train = 0 }
NR > 1 {
  if (!($5 in class)) class[$5] = classes++
  y[rows] = class[$5]; x[rows, 0] = 1
  for (j = 1; j <= 4; j++) { x[rows, j] = $j; mean[j] += $j; square[j] += $j * $j }
  rows++
}
END {
  srand(seed)
  for (i = 0; i < rows; i++) {
    for (j = 1; j <= 4; j++) x[i, j] = (x[i, j] - mean[j] / rows) / sqrt(square[j] / rows - (mean[j] / rows) ^ 2)
    if (i % 3 == 0) out[held++] = i; else order[train++] = i
  }
  first = 0
  if (resume != "" && (getline line < resume) > 0) {
    first = line + 1
    for (c = 0; c < 3; c++) for (j = 0; j <= 4; j++) { getline line < resume; split(line, pair, " "); w[c, j] = pair[1]; v[c, j] = pair[2] }
    print "going on from epoch " first
  }
  for (epoch = first; epoch < epochs; epoch++) {
    for (i = train - 1; i > 0; i--) { j = int(rand() * (i + 1)); t = order[i]; order[i] = order[j]; order[j] = t }
    for (i = 0; i < train; i += batch) step(i, i + batch < train ? i + batch : train)
    save(epoch)
    printf "{\"step\": %d, \"score\": %.6f}\n", epoch, loss()
    fflush()
  }
}' "$data" &
wait $!
