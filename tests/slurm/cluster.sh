#!/usr/bin/env bash
# A SLURM for tests/slurm: munge, slurmctld and two slurmd, as if of two nodes, on the loopback
# address, with GPUs that are only names. Debian or Ubuntu, as root, without systemd.
#   cluster.sh start        installs the packages where they lack and starts; may be repeated
#   cluster.sh stop         ends the daemons; the packages stay
#   cluster.sh lose NODE    marks a node as down, with all that runs on it, until it answers again
# Ends with status 77 and a reason where it cannot start, so that the tests skip.
#   CLUSTER_DIR    state and logs (default /var/lib/trace-test-slurm)
#   CLUSTER_SACCT  1: with an accounting database too, so that sacct answers (MariaDB; a minute more)
set -euo pipefail

DIR=${CLUSTER_DIR:-/var/lib/trace-test-slurm}
SACCT=${CLUSTER_SACCT:-0}
ETC=/etc/slurm
OURS="# Written by tests/slurm/cluster.sh"
HOST=$(hostname -s)
NODES=(node1 node2)
CPUS=$((2 * $(nproc))) # of each node, so four times those there are: much of a job is waiting
MEMORY=$(awk '/^MemTotal/ {print int($2 / 1024 * 0.75)}' /proc/meminfo)
GPUS=2 # of each node
PACKAGES=(munge slurmctld slurmd slurm-client slurm-wlm-basic-plugins)
[ "$SACCT" = 1 ] && PACKAGES+=(slurmdbd mariadb-server slurm-wlm-mysql-plugin)

cannot() { stop; echo "no SLURM for the tests: $*" >&2; exit 77; }

running() { [ -s "$DIR/$1.pid" ] && kill -0 "$(cat "$DIR/$1.pid")" 2>/dev/null; }

await() { # await SECONDS COMMAND...: until the command succeeds
  local end=$((SECONDS + $1)); shift
  until "$@" >/dev/null 2>&1; do
    [ $SECONDS -lt $end ] || return 1
    sleep 0.2
  done
}

gone() { ! running "$1"; }

stop() {
  if running slurmctld; then
    timeout 20 scancel --user=root >/dev/null 2>&1 || true
    await 40 eval '[ -z "$(squeue -h)" ]' || true # a job whose end nobody hears is not ended
  fi
  for daemon in "${NODES[@]}" slurmctld slurmdbd mariadb munged; do
    if running "$daemon"; then
      kill "$(cat "$DIR/$daemon.pid")"
      await 20 gone "$daemon" || true
    fi
    rm -f "$DIR/$daemon.pid"
  done
}

install_packages() {
  local package missing=()
  for package in "${PACKAGES[@]}"; do
    dpkg -s "$package" >/dev/null 2>&1 || missing+=("$package")
  done
  [ ${#missing[@]} -gt 0 ] || return 0
  export DEBIAN_FRONTEND=noninteractive
  { apt-get update -qq && apt-get install -y -qq --no-install-recommends "${missing[@]}"; } \
    >"$DIR/apt.log" 2>&1 || cannot "apt-get cannot install ${missing[*]} (see $DIR/apt.log)"
}

# jobacct_gather watches and ends jobs that outgrow their memory: cgroups need more rights than a
# container has, and pgid finds what a killed job leaves behind. Finished jobs stay in squeue for an
# hour, as sites without accounting need.
write_configuration() {
  local accounting="AccountingStorageType=accounting_storage/none" gpu
  if [ "$SACCT" = 1 ]; then
    accounting=$'AccountingStorageType=accounting_storage/slurmdbd\nAccountingStorageHost=127.0.0.1'
  fi
  cat >"$ETC/slurm.conf" <<CONF
$OURS
ClusterName=trace_test
SlurmctldHost=$HOST(127.0.0.1)
SlurmUser=root
SlurmdUser=root
AuthType=auth/munge
CredType=cred/munge
CommunicationParameters=NoInAddrAny,NoCtldInAddrAny
StateSaveLocation=$DIR/state
SlurmdSpoolDir=$DIR/spool/%n
SlurmctldPidFile=$DIR/slurmctld.pid
SlurmdPidFile=$DIR/%n.pid
SlurmctldLogFile=$DIR/slurmctld.log
SlurmdLogFile=$DIR/%n.log
ProctrackType=proctrack/pgid
TaskPlugin=task/none
MpiDefault=none
JobAcctGatherType=jobacct_gather/linux
JobAcctGatherFrequency=task=1
JobAcctGatherParams=OverMemoryKill
SchedulerType=sched/backfill
SchedulerParameters=batch_sched_delay=0,sched_min_interval=0,sched_interval=2,bf_interval=2
SelectType=select/cons_tres
SelectTypeParameters=CR_Core_Memory
ReturnToService=2
SlurmdParameters=config_overrides
MinJobAge=3600
KillWait=2
UnkillableStepTimeout=30
$accounting
GresTypes=gpu
NodeName=node[1-2] NodeHostname=$HOST NodeAddr=127.0.0.1 Port=[17001-17002] CPUs=$CPUS RealMemory=$MEMORY Gres=gpu:toy:$GPUS
PartitionName=cpu Nodes=ALL Default=YES MaxTime=INFINITE
PartitionName=gpu Nodes=ALL Default=NO MaxTime=INFINITE
CONF
  # A GPU counts when its device file exists; these are null devices, or plain files without mknod.
  echo "$OURS" >"$ETC/gres.conf"
  for ((gpu = 0; gpu < GPUS; gpu++)); do
    [ -e "$DIR/gpu$gpu" ] || mknod "$DIR/gpu$gpu" c 1 3 2>/dev/null || : >"$DIR/gpu$gpu"
    echo "Name=gpu Type=toy File=$DIR/gpu$gpu" >>"$ETC/gres.conf"
  done
}

start_munge() {
  if munge -n 2>/dev/null | unmunge >/dev/null 2>&1; then return; fi
  if [ ! -s /etc/munge/munge.key ]; then
    install -d -o munge -g munge -m 700 /etc/munge
    head -c 128 /dev/urandom >/etc/munge/munge.key
  fi
  chown munge: /etc/munge/munge.key
  chmod 400 /etc/munge/munge.key
  install -d -o munge -g munge -m 755 /run/munge /var/log/munge /var/lib/munge
  setpriv --reuid=munge --regid=munge --clear-groups munged --force --pid-file=/run/munge/munged.pid
  cp /run/munge/munged.pid "$DIR/munged.pid"
}

query() { mysql --socket="$DIR/mysql/socket" "$@"; }

start_accounting() {
  if [ ! -d "$DIR/mysql/mysql" ]; then
    install -d -o mysql "$DIR/mysql"
    mysql_install_db --user=mysql --datadir="$DIR/mysql" --skip-test-db >"$DIR/mysql.log" 2>&1
  fi
  if ! running mariadb; then
    mysqld --no-defaults --user=mysql --datadir="$DIR/mysql" --socket="$DIR/mysql/socket" \
      --bind-address=127.0.0.1 --port=33306 --innodb-lock-wait-timeout=900 \
      >"$DIR/mysql.log" 2>&1 </dev/null &
    echo $! >"$DIR/mariadb.pid" # it may not write here itself
    disown
    await 60 query -e "select 1" || cannot "MariaDB did not start (see $DIR/mysql.log)"
  fi
  query -e "create database if not exists accounting;
    create user if not exists 'slurm'@'127.0.0.1' identified by 'only-for-tests';
    grant all on accounting.* to 'slurm'@'127.0.0.1'"
  cat >"$ETC/slurmdbd.conf" <<CONF
$OURS
AuthType=auth/munge
DbdHost=$HOST
DbdAddr=127.0.0.1
SlurmUser=root
StorageType=accounting_storage/mysql
StorageHost=127.0.0.1
StoragePort=33306
StorageUser=slurm
StoragePass=only-for-tests
StorageLoc=accounting
LogFile=$DIR/slurmdbd.log
PidFile=$DIR/slurmdbd.pid
CONF
  chmod 600 "$ETC/slurmdbd.conf"
  running slurmdbd || slurmdbd
  await 60 sacctmgr -n list cluster || cannot "slurmdbd did not start (see $DIR/slurmdbd.log)"
  sacctmgr -n list cluster format=cluster%40 | grep -q trace_test ||
    sacctmgr -i add cluster trace_test >/dev/null
}

idle() { # idle NODE
  scontrol update nodename="$1" state=resume || true
  [ "$(sinfo -h -o %T -p cpu -n "$1")" = idle ]
}

start() {
  [ "$(id -u)" = 0 ] || cannot "root starts it, and this is $(id -un)"
  command -v apt-get >/dev/null || cannot "its packages are installed with apt-get, which is not here"
  if [ -e "$ETC/slurm.conf" ] && [ "$(head -1 "$ETC/slurm.conf")" != "$OURS" ]; then
    cannot "$ETC/slurm.conf is of another cluster, which stays as it is"
  fi
  mkdir -p "$DIR/state" "$DIR/spool" "$ETC"
  install_packages
  stop
  write_configuration
  start_munge
  [ "$SACCT" != 1 ] || start_accounting
  slurmctld -c # with no memory of earlier jobs
  await 30 eval "scontrol ping | grep -q UP" || cannot "slurmctld did not start (see $DIR/slurmctld.log)"
  for node in "${NODES[@]}"; do
    slurmd -N "$node"
    await 30 idle "$node" || cannot "$node did not come up (see $DIR/$node.log)"
  done
  sinfo -h -p cpu -o "SLURM is up: nodes %N, each of %c CPUs, %m MB, %G"
}

lose() {
  scontrol update nodename="$1" state=down reason="the tests lose it"
  await 30 idle "$1"
}

case "${1:-}" in
  start) start ;;
  stop) stop ;;
  lose) lose "$2" ;;
  *) sed -n 2,11p "$0"; exit 2 ;;
esac
