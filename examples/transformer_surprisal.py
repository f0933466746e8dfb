"""Surprisals of a causal language model of transformers, beside those of an n-gram model."""

import tokenizers
import transformers

import treelm

words = tokenizers.Tokenizer(tokenizers.models.WordLevel({"The": 0, "boat": 1, "<e>": 2}, "<e>"))
words.pre_tokenizer = tokenizers.pre_tokenizers.WhitespaceSplit()
transformers.PreTrainedTokenizerFast(tokenizer_object=words, eos_token="<e>").save_pretrained("gpt")
sizes = {"vocab_size": 3, "n_embd": 8, "n_layer": 1, "n_head": 1}
config = transformers.GPT2Config(**sizes, eos_token_id=2, bos_token_id=2)
transformers.GPT2LMHeadModel(config).save_pretrained("gpt")  # random, where you have a trained one
ngram = treelm.train("ngram", [tree.words for tree in treelm.sample_treebank()], order=2)
for model in (treelm.load("hf:gpt"), ngram):
    print(model, [(row.word, round(row.surprisal, 1)) for row in model.surprisal("The boat")])
