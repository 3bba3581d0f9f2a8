"""Train a small MarianMT on Multi30k (German to English), for an audit of a translator:

python examples/audit/marian_multi30k.py DATA/multi30k models/marian --seed 0
attnscope audit models/marian multi30k-de-en --examples 100
"""

import argparse
import gzip
from pathlib import Path

import torch
from tokenizers import Tokenizer, models, normalizers, pre_tokenizers, processors, trainers
from transformers import MarianConfig, MarianMTModel, PreTrainedTokenizerFast

SPECIALS = ["<pad>", "<unk>", "</s>"]


def read(folder, split, languages=("de", "en")):
    sides = []
    for language in languages:
        with gzip.open(Path(folder) / f"{split}.{language}.gz", "rt", encoding="utf8") as lines:
            sides.append([line.strip() for line in lines])
    return sides


def tokenizer_of(texts):
    cut = Tokenizer(models.Unigram())
    cut.normalizer, cut.pre_tokenizer = normalizers.Lowercase(), pre_tokenizers.Metaspace()
    trainer = trainers.UnigramTrainer(vocab_size=4000, special_tokens=SPECIALS, unk_token="<unk>")
    cut.train_from_iterator(texts, trainer)
    cut.post_processor = processors.TemplateProcessing(
        single="$A </s>", special_tokens=[("</s>", 2)]
    )
    return PreTrainedTokenizerFast(
        tokenizer_object=cut,
        pad_token="<pad>",
        unk_token="<unk>",
        eos_token="</s>",
        model_max_length=100,
    )


def batches(texts, size=64, pool=20):
    """Return random batches of texts of about the same length: less padding, less time."""
    pools = torch.randperm(len(texts)).split(size * pool)
    found = []
    for rows in pools:
        found += torch.tensor(sorted(rows.tolist(), key=lambda n: len(texts[n]))).split(size)
    return [found[n] for n in torch.randperm(len(found))]


def main(data, out, seed, epochs, width, layers, pairs):
    torch.manual_seed(seed)
    sources, targets = (side[:pairs] for side in read(data, "train"))
    cut = tokenizer_of([*sources, *targets])
    config = MarianConfig(
        vocab_size=len(cut),
        d_model=width,
        encoder_layers=layers,
        decoder_layers=layers,
        encoder_attention_heads=4,
        decoder_attention_heads=4,
        encoder_ffn_dim=2 * width,
        decoder_ffn_dim=2 * width,
        max_position_embeddings=100,
        pad_token_id=0,
        eos_token_id=2,
        decoder_start_token_id=0,
        forced_eos_token_id=2,
    )
    model = MarianMTModel(config)
    optimizer = torch.optim.AdamW(model.parameters(), lr=1e-3)
    for epoch in range(epochs):
        for rows in batches(targets):
            batch = cut([sources[n] for n in rows], padding=True, return_tensors="pt")
            wanted = cut([targets[n] for n in rows], padding=True, return_tensors="pt")
            labels = wanted["input_ids"].masked_fill(wanted["attention_mask"] == 0, -100)
            loss = model(**batch, labels=labels).loss
            optimizer.zero_grad()
            loss.backward()
            optimizer.step()
        print(f"epoch {epoch}: loss {loss.item():.3f}")
    model.save_pretrained(Path(out))
    cut.save_pretrained(Path(out))


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("data", help="folder with train.de.gz and train.en.gz")
    parser.add_argument("out", help="folder of the trained model")
    sizes = {"seed": 0, "epochs": 6, "width": 128, "layers": 3, "pairs": 29000}
    for name, default in sizes.items():
        parser.add_argument(f"--{name}", type=int, default=default, help="default %(default)s")
    main(**vars(parser.parse_args()))
