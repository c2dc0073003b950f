"""Triton with models in its Python backend, as pytriton's package brings it, without pytriton between them."""

import os
import sys
import sysconfig
from pathlib import Path

import pytriton


def serve(port, folder, models):
    """Becomes a Triton at `port`, and at the next two for gRPC and metrics. `folder`, which is empty, gets its
    files. `models` are names, configurations and Python programs."""
    package = Path(pytriton.__file__).parent
    triton = package / "tritonserver"
    # The backend, next to the program that runs models with this version of Python.
    backend = folder / "backends" / "python"
    backend.mkdir(parents=True)
    for file in (triton / "backends" / "python").iterdir():
        (backend / file.name).symlink_to(file)
    version = f"{sys.version_info.major}.{sys.version_info.minor}"
    stub = "triton_python_backend_stub"
    (backend / stub).symlink_to(triton / "python_backend_stubs" / version / stub)
    for name, config, code in models:
        model = folder / "models" / name
        (model / "1").mkdir(parents=True)
        (model / "config.pbtxt").write_text(config)
        (model / "1" / "model.py").write_text(code)
    libraries = [sysconfig.get_config_var("LIBDIR"), str(package.parent / "nvidia_pytriton.libs")]
    environment = os.environ | {
        "LD_LIBRARY_PATH": ":".join(libraries),
        "PATH": f"{Path(sys.executable).parent}:{os.environ['PATH']}",
        "PYTHONPATH": str(package.parent),
    }
    program = str(triton / "bin" / "tritonserver")
    options = {
        "model-repository": folder / "models",
        "backend-directory": folder / "backends",
        # Servers on one machine have memory of their own.
        "backend-config": f"python,shm-region-prefix-name=peer{port}-",
        "http-port": port,
        "grpc-port": port + 1,
        "metrics-port": port + 2,
    }
    os.execve(program, [program, *(f"--{key}={value}" for key, value in options.items())], environment)
