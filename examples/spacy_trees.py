"""Trees and surprisals of a model of treelm in a spaCy pipeline."""

import spacy

import treelm

treelm.train("hhmm", list(treelm.sample_treebank())).save("model")
nlp = spacy.blank("en")
nlp.add_pipe("treelm", config={"model": "model"})
doc = nlp('"The boat was late," he said. We can\'t wait.')
for sentence in doc.sents:
    print(sentence._.parse_string)
    print([(span.text, span.label_) for span in sentence._.constituents if span.label_ == "NP"])
    print([(token.text, round(token._.surprisal, 1)) for token in sentence])
