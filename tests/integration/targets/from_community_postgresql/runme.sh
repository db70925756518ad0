#!/usr/bin/env bash
set -eux
export PYTHONPATH="../setup_playbooks:${PYTHONPATH:-}"
exec python before_and_after.py
