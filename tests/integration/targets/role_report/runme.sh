#!/usr/bin/env bash
set -eux
export PYTHONPATH="../setup_playbooks:${PYTHONPATH:-}"
exec python report.py
