"""Train a small BERT on SST with plain PyTorch and transformers, for an audit:

python examples/audit/bert_sst.py DATA/sst_binary models/bert
attnscope audit models/bert sst --checkpoints models/bert
"""

import gzip
import json
import sys
from pathlib import Path

import torch
from tokenizers import Tokenizer, models, normalizers, pre_tokenizers, processors, trainers
from transformers import BertConfig, BertForSequenceClassification, PreTrainedTokenizerFast

SPECIALS = ["[PAD]", "[UNK]", "[CLS]", "[SEP]", "[MASK]"]


def read(folder, split):
    with gzip.open(Path(folder) / f"{split}.jsonl.gz", "rt", encoding="utf8") as lines:
        rows = [json.loads(line) for line in lines]
    return [row["text"] for row in rows], torch.tensor([row["label"] for row in rows])


def tokenizer_of(texts):
    cut = Tokenizer(models.WordPiece(unk_token="[UNK]"))
    cut.normalizer, cut.pre_tokenizer = normalizers.Lowercase(), pre_tokenizers.WhitespaceSplit()
    trainer = trainers.WordPieceTrainer(vocab_size=6000, special_tokens=SPECIALS)
    cut.train_from_iterator(texts, trainer)
    # A tokeniser trained from scratch adds no boundaries, and BERT's output reads the first one.
    cut.post_processor = processors.TemplateProcessing(
        single="[CLS] $A [SEP]", special_tokens=[("[CLS]", 2), ("[SEP]", 3)]
    )
    named = dict(zip(("pad", "unk", "cls", "sep", "mask"), SPECIALS, strict=True))
    names = {f"{name}_token": token for name, token in named.items()}
    return PreTrainedTokenizerFast(tokenizer_object=cut, model_max_length=128, **names)


def main(data, out, seed=0, epochs=4, width=128, layers=3):
    torch.manual_seed(seed)
    texts, labels = read(data, "train")
    cut = tokenizer_of(texts)
    config = BertConfig(
        vocab_size=len(cut),
        hidden_size=width,
        num_hidden_layers=layers,
        num_attention_heads=4,
        intermediate_size=2 * width,
        max_position_embeddings=128,
    )
    model = BertForSequenceClassification(config)
    optimizer = torch.optim.AdamW(model.parameters(), lr=5e-4, weight_decay=0.01)
    step = 0
    for _ in range(epochs):
        order = torch.randperm(len(texts))
        model.train()
        for rows in order.split(64):
            batch = cut([texts[n] for n in rows], padding=True, return_tensors="pt")
            loss = model(**batch, labels=labels[rows]).loss
            optimizer.zero_grad()
            loss.backward()
            optimizer.step()
            step += 1
            if step in (10, 50, 200):
                model.save_pretrained(Path(out) / f"checkpoint-{step}")
        print(f"step {step}: validation accuracy {accuracy(model, cut, data):.3f}")
    model.save_pretrained(out)
    model.save_pretrained(Path(out) / f"checkpoint-{step}")
    cut.save_pretrained(out)


@torch.no_grad()
def accuracy(model, cut, data):
    model.eval()
    texts, labels = read(data, "dev")
    hits = 0
    for start in range(0, len(texts), 128):
        batch = cut(texts[start : start + 128], padding=True, return_tensors="pt")
        hits += int((model(**batch).logits.argmax(-1) == labels[start : start + 128]).sum())
    return hits / len(texts)


if __name__ == "__main__":
    main(sys.argv[1], sys.argv[2], *map(int, sys.argv[3:]))
