"""Small networks of transformers in folders, as ``save_pretrained`` writes them."""

from pathlib import Path

import transformers

from tests.network import made_networks as networks

SIZES = {"hidden_size": 16, "intermediate_size": 24, "num_hidden_layers": 2, "num_attention_heads": 2}
TOKENS = {"vocab_size": 30, "bos_token_id": 1, "eos_token_id": 2, "pad_token_id": 0}


def bert():
    config = transformers.BertConfig(**SIZES, **TOKENS, max_position_embeddings=40, num_labels=3)
    return transformers.BertForSequenceClassification(config)


def gpt2():
    config = transformers.GPT2Config(n_embd=16, n_layer=2, n_head=2, n_positions=40, **TOKENS)
    return transformers.GPT2LMHeadModel(config)


def llama():
    return transformers.LlamaForCausalLM(transformers.LlamaConfig(**SIZES, **TOKENS, max_position_embeddings=40))


def vit():
    config = transformers.ViTConfig(**SIZES, image_size=16, patch_size=8, num_labels=3)
    return transformers.ViTForImageClassification(config)


def resnet():
    config = transformers.ResNetConfig(
        embedding_size=8, hidden_sizes=[8, 16], depths=[1, 1], layer_type="basic", num_labels=3
    )
    return transformers.ResNetForImageClassification(config)


def clip():
    text, vision = SIZES | TOKENS, SIZES | {"image_size": 16, "patch_size": 8}
    return transformers.CLIPModel(transformers.CLIPConfig(text_config=text, vision_config=vision, projection_dim=8))


def whisper():
    heads = {"encoder_attention_heads": 2, "decoder_attention_heads": 2, "encoder_ffn_dim": 16, "decoder_ffn_dim": 16}
    layers = {"d_model": 16, "encoder_layers": 1, "decoder_layers": 1, "decoder_start_token_id": 1}
    return transformers.WhisperForConditionalGeneration(transformers.WhisperConfig(**heads, **layers, **TOKENS))


BUILDS = (bert, gpt2, llama, vit, resnet, clip, whisper)


def saved(build, folder: Path, *, seed: int = 0, **options):
    """A network with random weights, and its folder."""
    model = networks.seeded(build, seed=seed).eval()
    model.save_pretrained(folder, **options)
    return model
