"""Audit the classifier that lstm_sst.py trained:

python examples/audit/lstm_audit.py DATA/sst_binary models/lstm runs
"""

import json
import sys
from pathlib import Path

from lstm_sst import Classifier, cutter
from safetensors.torch import load_file

import attnscope


def main(data, folder, out="runs"):
    known = json.loads((Path(folder) / "words.json").read_text())
    model = Classifier(len(known) + 2)
    model.load_state_dict(load_file(Path(folder) / "weights.safetensors"))
    done = attnscope.audit(model, data, tokenizer=cutter(known), out=out)
    print(done)
    print(done.table())


if __name__ == "__main__":
    main(*sys.argv[1:])
