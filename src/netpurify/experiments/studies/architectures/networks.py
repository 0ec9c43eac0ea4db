"""Networks as people have them, built from their configs with random weights: vision, text, speech, a tagger."""

from collections.abc import Callable
from dataclasses import dataclass
from functools import partial
from typing import Any

import torch
from torch import Tensor, nn

from netpurify.experiments.studies.third_party import convnext, resnet18, vit

Inputs = dict[str, Tensor]
WORDS = 1000
LENGTH = 12


class Tagger(nn.Module):
    """A tagger: an embedding, two LSTM layers in both directions, a head for every token."""

    def __init__(self) -> None:  # noqa: D107
        super().__init__()
        self.embedding = nn.Embedding(WORDS, 64)
        self.recurrent = nn.LSTM(64, 48, num_layers=2, bidirectional=True, batch_first=True)
        self.norm = nn.LayerNorm(96)
        self.head = nn.Linear(96, 9)

    def forward(self, input_ids: Tensor) -> Tensor:  # noqa: D102
        return self.head(self.norm(self.recurrent(self.embedding(input_ids))[0]))


def gpt2(library: Any) -> nn.Module:
    """A small GPT-2, whose output layer shares its weights with the embedding."""
    config = library.GPT2Config(vocab_size=WORDS, n_positions=64, n_embd=128, n_layer=3, n_head=4)
    return library.GPT2ForSequenceClassification(config_with(config, pad_token_id=0, num_labels=4))


def bert(library: Any) -> nn.Module:
    """A small BERT."""
    config = library.BertConfig(
        vocab_size=WORDS, hidden_size=128, num_hidden_layers=3, num_attention_heads=4, intermediate_size=512,
        max_position_embeddings=64, num_labels=4,
    )  # fmt: skip
    return library.BertForSequenceClassification(config)


def llama(library: Any) -> nn.Module:
    """A small decoder like Llama: RMSNorm, rotary positions, gated layers, no biases."""
    config = library.LlamaConfig(
        vocab_size=WORDS, hidden_size=128, intermediate_size=344, num_hidden_layers=3, num_attention_heads=4,
        num_key_value_heads=2, max_position_embeddings=64, pad_token_id=0, num_labels=4,
    )  # fmt: skip
    return library.LlamaForSequenceClassification(config)


def whisper(library: Any) -> nn.Module:
    """A small encoder like Whisper's, with a classifier."""
    config = library.WhisperConfig(
        vocab_size=WORDS, num_mel_bins=40, d_model=96, encoder_layers=2, decoder_layers=1, encoder_attention_heads=4,
        decoder_attention_heads=4, encoder_ffn_dim=256, decoder_ffn_dim=256, max_source_positions=50, num_labels=4,
        pad_token_id=0, bos_token_id=1, eos_token_id=2, decoder_start_token_id=1, classifier_proj_size=64,
    )  # fmt: skip
    return library.WhisperForAudioClassification(config)


def clip(library: Any) -> nn.Module:
    """A small CLIP: a text and an image tower."""
    text = {"vocab_size": WORDS, "hidden_size": 96, "intermediate_size": 192, "num_hidden_layers": 2,
            "num_attention_heads": 4, "max_position_embeddings": 32, "eos_token_id": 2, "bos_token_id": 1,
            "pad_token_id": 0}  # fmt: skip
    vision = {"hidden_size": 96, "intermediate_size": 192, "num_hidden_layers": 2, "num_attention_heads": 4,
              "image_size": 32, "patch_size": 8}  # fmt: skip
    return library.CLIPModel(library.CLIPConfig(text_config=text, vision_config=vision, projection_dim=48))


def config_with(config: Any, **values: Any) -> Any:
    """A config with further values, which its class takes only after it was built."""
    for name, value in values.items():
        setattr(config, name, value)
    return config


@dataclass(frozen=True, slots=True)
class TestedArchitecture:
    """How a network is built, called and tuned.

    Attributes:
        build: Builds it, from the library.
        inputs: Draws clean inputs: a number of them, and a generator.
        head: Name of the layer that is tuned where the rest is frozen.
    """

    build: Callable[[Any], nn.Module]
    inputs: Callable[[int, torch.Generator], Inputs]
    head: str


def _images(size: int, count: int, generator: torch.Generator) -> Inputs:
    return {"pixel_values": torch.rand(count, 3, size, size, generator=generator)}


def _tokens(count: int, generator: torch.Generator) -> Inputs:
    return {"input_ids": torch.randint(3, WORDS, (count, LENGTH), generator=generator)}


def _speech(count: int, generator: torch.Generator) -> Inputs:
    return {"input_features": torch.randn(count, 40, 100, generator=generator)}


def _pairs(count: int, generator: torch.Generator) -> Inputs:
    tokens = _tokens(count, generator)["input_ids"]
    tokens[:, -1] = 2  # the end of the text, where CLIP reads its summary
    return {"input_ids": tokens} | _images(32, count, generator)


ARCHITECTURES: dict[str, TestedArchitecture] = {
    "ResNet-18": TestedArchitecture(resnet18, partial(_images, 32), "classifier.1"),
    "ConvNeXt": TestedArchitecture(convnext, partial(_images, 32), "classifier"),
    "ViT": TestedArchitecture(vit, partial(_images, 96), "classifier"),
    "GPT-2": TestedArchitecture(gpt2, _tokens, "score"),
    "BERT": TestedArchitecture(bert, _tokens, "classifier"),
    "Llama-like": TestedArchitecture(llama, _tokens, "score"),
    "Whisper-like": TestedArchitecture(whisper, _speech, "classifier"),
    "CLIP-like": TestedArchitecture(clip, _pairs, "visual_projection"),
    "LSTM tagger": TestedArchitecture(lambda _: Tagger(), _tokens, "head"),
}


def build(name: str) -> nn.Module:
    """A network with random weights. Norms get weights that differ, as after pre-training."""
    import transformers

    network = ARCHITECTURES[name].build(transformers)
    with torch.no_grad():
        for key, value in network.state_dict(keep_vars=True).items():
            if value.is_floating_point() and value.dim() == 1 and value.numel() > 1:
                value.add_(0.05 * torch.rand(value.shape))
            del key
    return network.eval()


def output(network: nn.Module, inputs: Inputs) -> Tensor:
    """The first tensor that the network gives."""
    found = network(**inputs)
    if isinstance(found, Tensor):
        return found
    return found.logits_per_image if hasattr(found, "logits_per_image") else found.logits
