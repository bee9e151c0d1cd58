#!/bin/bash
# SPDX-License-Identifier: GPL-2.0
#
# Two nodes as a cluster of slurm, with its controller and srun on node 0: ranks that find each
# other by PMIx, of both nodes, each by its node's RDMA device.
set -u
. tests/lab/module.sh
example=${LAB_BUILD:?}/ulib/bin/alltoall

# One key, whose secrecy protects nothing here
authenticate() {
	printf 'a key of the lab: %01000d' 0 >/etc/munge/munge.key &&
		install -d -m 711 -o munge /run/munge /var/lib/munge &&
		install -d -m 700 -o munge /var/log/munge &&
		chown munge /etc/munge/munge.key && chmod 400 /etc/munge/munge.key &&
		runuser -u munge -- munged && munge -n | unmunge
}

configure() {
	hostname "node$LAB_NODE"
	printf '127.0.0.1 localhost\n10.0.0.1 node0\n10.0.0.2 node1\n' >/etc/hosts
	mkdir -p /etc/slurm /tmp/slurmctld /tmp/slurmd
	# slurmd wants to find some; it does not use any
	mount -t tmpfs none /sys/fs/cgroup
	printf 'CgroupPlugin=cgroup/v1\n' >/etc/slurm/cgroup.conf
	cat >/etc/slurm/slurm.conf <<-CONF
		ClusterName=lab
		SlurmctldHost=node0
		SlurmUser=root
		AuthType=auth/munge
		ProctrackType=proctrack/linuxproc
		TaskPlugin=task/none
		StateSaveLocation=/tmp/slurmctld
		SlurmdSpoolDir=/tmp/slurmd
		SlurmdParameters=config_overrides
		SlurmctldLogFile=/tmp/slurmctld.log
		SlurmdLogFile=/tmp/slurmd.log
		SelectType=select/cons_tres
		ReturnToService=2
		MessageTimeout=60
		NodeName=node[0-1] CPUs=8 RealMemory=512 State=UNKNOWN
		PartitionName=all Nodes=ALL Default=YES MaxTime=INFINITE State=UP
	CONF
}

both_idle() {
	[[ $(sinfo -h -t idle -o %D) == 2 ]]
}

joins() {
	slurmd -N "node$LAB_NODE" && return
	cat /tmp/slurmd.log
	return 1
}

ranks() {
	srun --mpi=pmix -N 2 -n 8 --ntasks-per-node 4 --export=ALL "$example" "$@"
}

# Open MPI's, by a daemon on each node of slurm's allocation
mpi_ranks() {
	salloc -Q -N 2 -n 8 --ntasks-per-node 4 timeout 300 mpirun --allow-run-as-root "$example" "$@"
}

# eight_ranks LAUNCHER
eight_ranks() {
	local said
	said=$("$1" 2 200000) || { echo "$said"; return 1; }
	echo "$said" | tee /dev/stderr | grep -q '^56 of 56 pairs of 8 ranks work$' &&
		grep -qE '8 ranks: 2 steps of 8 MB each, all right' <<<"$said"
}

are_at_it() {
	grep -q '^56 of 56' /tmp/killed.out
}

# Slurm's PMIx ends those that are left before these could say anything, and srun names who was killed
others_end() {
	local begin=$SECONDS status
	wait "$1"
	status=$?
	cat /tmp/killed.out /tmp/killed.err
	echo "srun: status $status, $((SECONDS - begin)) s after one rank was killed, with a timeout of 10 s"
	((status != 0 && SECONDS - begin < 60)) &&
		grep -qE '^srun: error: node1: task [4-7]: Killed' /tmp/killed.err
}

load
configure
check "munge" authenticate
lab-barrier authenticated 60
if [[ $LAB_NODE == 0 ]]; then
	check "slurmctld" slurmctld
	check "it answers" until_true scontrol ping
fi
lab-barrier controlled 120
check "slurmd" joins
lab-barrier joined 60
if [[ $LAB_NODE == 0 ]]; then
	check "both nodes are there" until_true both_idle
	check "eight ranks of two nodes, by srun" eight_ranks ranks
	check "eight ranks of two nodes, by mpirun" eight_ranks mpi_ranks
	ranks 100000 10000 >/tmp/killed.out 2>/tmp/killed.err &
	job=$!
	check "eight ranks fetch from each other" until_true are_at_it
fi
lab-barrier fetching 300
[[ $LAB_NODE == 0 ]] || check "one of them is killed" pkill -KILL -o -x alltoall
if [[ $LAB_NODE == 0 ]]; then
	check "the others end, and srun says why" others_end "$job"
	cat /tmp/out
fi
lab-barrier ended 300
pkill slurmd
pkill slurmctld
pkill munged
check "rmmod" until_true rmmod rdmatensor
exit $failed
