"""Train a small MarianMT on Multi30k (German to English), for an audit of a translator:

python examples/audit/marian_multi30k.py DATA/multi30k models/marian
attnscope audit models/marian multi30k-de-en --examples 100
"""

import gzip
import sys
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
    trainer = trainers.UnigramTrainer(vocab_size=6000, special_tokens=SPECIALS, unk_token="<unk>")
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


def main(data, out, seed=0, epochs=6, width=128, layers=3):
    torch.manual_seed(seed)
    sources, targets = read(data, "train")
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
        for rows in torch.randperm(len(sources)).split(64):
            batch = cut([sources[n] for n in rows], padding=True, return_tensors="pt")
            wanted = cut([targets[n] for n in rows], padding=True, return_tensors="pt")
            labels = wanted["input_ids"].masked_fill(wanted["attention_mask"] == 0, -100)
            loss = model(**batch, labels=labels).loss
            optimizer.zero_grad()
            loss.backward()
            optimizer.step()
        print(f"epoch {epoch}: loss {float(loss):.3f}")
    model.save_pretrained(Path(out))
    cut.save_pretrained(Path(out))


if __name__ == "__main__":
    main(sys.argv[1], sys.argv[2], *map(int, sys.argv[3:]))
