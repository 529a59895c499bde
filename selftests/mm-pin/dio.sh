#!/bin/sh
# SPDX-License-Identifier: GPL-2.0-only
#
# Run a test with servers to do direct I/O to: the kernel's nfsd on this machine,
# mounted over lo, and what QEMU serves over virtio as 9p.
#
#   dio.sh [PROGRAM [ARGUMENT ...]]	./dio without one
#
# The program finds in its environment where they are mounted, as DIO_NFS3,
# DIO_NFS4 and DIO_9P, or nothing where that cannot be had. Needs root. Mounts and
# files are made in a mount namespace and a tmpfs of its own, and go with it;
# nfsd, which is the machine's, is left alone where it runs already.
set -eu

[ -n "${DIO_NAMESPACE-}" ] || DIO_NAMESPACE=1 exec unshare -m "$0" "$@"
[ $# -gt 0 ] || set -- "$(dirname "$0")/dio"

say()
{
	echo "# dio.sh: $*"
}

dir=$(mktemp -d)
mount -t tmpfs none "$dir"
mkdir "$dir/export" "$dir/nfs3" "$dir/nfs4" "$dir/9p"
nfsd_up=''

# shellcheck disable=SC2317 # called by the trap
cleanup()
{
	umount -l "$dir/nfs3" "$dir/nfs4" "$dir/9p" 2>/dev/null || true
	if [ -n "$nfsd_up" ]; then
		rpc.nfsd 0 || true
		# shellcheck disable=SC2046 # several processes
		kill $(cat "$dir/mountd.pid" "$dir/rpcbind.pid" 2>/dev/null) 2>/dev/null || true
	fi
	umount -l "$dir"
	rmdir "$dir"
}
trap cleanup EXIT
trap 'exit 130' INT TERM

# mount_nfs VERSION OPTIONS SOURCE DIRECTORY
mount_nfs()
{
	mount -i -t "$1" -o "$2,addr=127.0.0.1,proto=tcp,port=2049,timeo=600" "$3" "$4"
}

nfs_up()
{
	for program in rpcbind rpc.nfsd rpc.mountd exportfs; do
		command -v $program >/dev/null || { say "NFS: no $program"; return; }
	done
	if grep -q '^[1-9]' /proc/fs/nfsd/threads 2>/dev/null; then
		say "NFS: nfsd is running already, not touching it"
		return
	fi
	mkdir "$dir/state" "$dir/run"
	mount -t tmpfs none /run
	mkdir -p /run/rpcbind /var/lib/nfs /etc/exports.d
	mount -t tmpfs none /var/lib/nfs
	mkdir -p /var/lib/nfs/v4recovery /var/lib/nfs/rpc_pipefs
	touch /var/lib/nfs/etab /var/lib/nfs/rmtab
	nfsd_up=1
	mount -t nfsd none /proc/fs/nfsd 2>/dev/null || true
	rpcbind -f & echo $! >"$dir/rpcbind.pid"
	until rpcinfo -p >/dev/null 2>&1 || [ -S /run/rpcbind.sock ]; do sleep 0.1; done
	exportfs -i -o rw,no_root_squash,insecure,no_subtree_check,fsid=0 "127.0.0.1:$dir/export"
	rpc.mountd -F -p 20048 & echo $! >"$dir/mountd.pid"
	# The shortest grace period: nobody is there to record what to reclaim.
	echo 10 >/proc/fs/nfsd/nfsv4gracetime 2>/dev/null || true
	rpc.nfsd -H 127.0.0.1 8
	mountd=mountproto=tcp,mountport=20048,mountvers=3,mountaddr=127.0.0.1
	if mount_nfs nfs "vers=3,nolock,$mountd" "127.0.0.1:$dir/export" "$dir/nfs3"; then
		export DIO_NFS3="$dir/nfs3"
	else
		say "NFS: no version 3"
	fi
	if mount_nfs nfs4 minorversion=2,clientaddr=127.0.0.1 127.0.0.1:/ "$dir/nfs4"; then
		export DIO_NFS4="$dir/nfs4"
	else
		say "NFS: no version 4.2"
	fi
}

p9_up()
{
	if mount -t 9p -o trans=virtio,version=9p2000.L,cache=none,msize=1048576 \
		mm-pin "$dir/9p" 2>/dev/null; then
		export DIO_9P="$dir/9p"
	else
		say "9p: QEMU offers no mount tag mm-pin"
	fi
}

nfs_up
p9_up
status=0
"$@" || status=$?
exit $status
