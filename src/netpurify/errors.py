"""The errors that netpurify raises on purpose; each message says what was expected, what came and what to do."""


class NetpurifyError(Exception):
    """Base of every error that netpurify raises on purpose."""


class InputError(NetpurifyError, ValueError):
    """An argument has the wrong kind, shape, dtype or content."""


class DataError(NetpurifyError):
    """A data set is not there, damaged, foreign, or could not be fetched or stored."""


class CheckpointError(NetpurifyError):
    """A file of weights is not there, damaged, could run code if it were read, or could not be written."""


class EngineError(NetpurifyError):
    """Work could not be run where it was meant to: no such cluster, a worker that died, a worker without netpurify."""


class JournalError(NetpurifyError):
    """The record of an experiment's finished trials is damaged, in use by another run, or could not be written."""


class DisagreementError(NetpurifyError):
    """A defended network would differ more from the contaminated one on clean inputs than the caller allows."""
