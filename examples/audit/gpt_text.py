"""Train a small GPT-2 on the sentences of a corpus, for an audit of a language model:

python examples/audit/gpt_text.py DATA/yelp_sentences models/gpt --seed 0
attnscope audit models/gpt DATA/yelp_sentences --examples 60
"""

import argparse
from pathlib import Path

import torch
from bert_sst import read
from tokenizers import Tokenizer, models, pre_tokenizers, processors, trainers
from transformers import GPT2Config, GPT2LMHeadModel, PreTrainedTokenizerFast

END = "<|endoftext|>"


def tokenizer_of(texts):
    cut = Tokenizer(models.BPE())
    cut.pre_tokenizer = pre_tokenizers.ByteLevel(add_prefix_space=True)
    alphabet = pre_tokenizers.ByteLevel.alphabet()
    trainer = trainers.BpeTrainer(vocab_size=4000, special_tokens=[END], initial_alphabet=alphabet)
    cut.train_from_iterator(texts, trainer)
    cut.post_processor = processors.TemplateProcessing(
        single=f"{END} $A", special_tokens=[(END, 0)]
    )
    return PreTrainedTokenizerFast(
        tokenizer_object=cut, eos_token=END, pad_token=END, model_max_length=128
    )


def main(data, out, seed, epochs, width, layers, texts):
    torch.manual_seed(seed)
    texts = read(data, "train")[0][:texts]
    cut = tokenizer_of(texts)
    config = GPT2Config(
        vocab_size=len(cut),
        n_embd=width,
        n_layer=layers,
        n_head=4,
        n_positions=128,
        bos_token_id=0,
        eos_token_id=0,
    )
    model = GPT2LMHeadModel(config)
    optimizer = torch.optim.AdamW(model.parameters(), lr=1e-3)
    for _ in range(epochs):
        for rows in torch.randperm(len(texts)).split(64):
            batch = cut([texts[n] for n in rows], padding=True, return_tensors="pt")
            wanted = batch["input_ids"].masked_fill(batch["attention_mask"] == 0, -100)
            loss = model(**batch, labels=wanted).loss
            optimizer.zero_grad()
            loss.backward()
            optimizer.step()
        print(f"loss {loss.item():.3f}")
    model.save_pretrained(Path(out))
    cut.save_pretrained(Path(out))


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("data", help="folder with train.jsonl.gz")
    parser.add_argument("out", help="folder of the trained model")
    sizes = {"seed": 0, "epochs": 2, "width": 128, "layers": 3, "texts": 50000}
    for name, default in sizes.items():
        parser.add_argument(f"--{name}", type=int, default=default, help="default %(default)s")
    main(**vars(parser.parse_args()))
