#!/bin/bash
#SBATCH --job-name=resnet
#SBATCH --gres=gpu:1
#SBATCH --cpus-per-task=4
#SBATCH --time=02:00:00
#TAKT tier: training
#TAKT checkpoint: {signal: USR1, grace: 60s}
python train.py --data "$1"
