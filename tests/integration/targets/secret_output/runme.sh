#!/usr/bin/env bash
set -eux
PYTHONPATH=../setup_playbooks exec python output.py
