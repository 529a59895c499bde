# Shared by all scripts: paths, messages, locks, packages. Sourced, never run.
# shellcheck shell=bash disable=SC2034
set -eu -o pipefail

me=${0##*/}
top=$(cd "$(dirname "${BASH_SOURCE[0]}")/.." && pwd -P)
build=$top/build
tree=$build/linux
scratch=$build/scratch/linux
# git status must leave no index.lock behind where it is killed.
export LC_ALL=C GIT_OPTIONAL_LOCKS=0
mkdir -p "$build"

# shellcheck source=configs/base
. "$top/configs/base"

die()
{
	printf '%s: error: %s\n' "$me" "$*" >&2
	exit 1
}

say()
{
	printf '%s: %s\n' "$me" "$*" >&2
}

# The comment block at the head of a script is its help.
usage()
{
	sed -n '2,/^[^#]/{s/^# \{0,1\}//p}' "$0"
}

bad_usage()
{
	printf '%s: %s\n' "$me" "$*" >&2
	usage >&2
	exit 2
}

# need COMMAND:PACKAGE ... - install what is missing; a leading / is a file.
need()
{
	local pair missing=()

	for pair; do
		case $pair in
		/*) [ -e "${pair%%:*}" ] || missing+=("${pair#*:}") ;;
		*) command -v "${pair%%:*}" >/dev/null || missing+=("${pair#*:}") ;;
		esac
	done
	[ ${#missing[@]} -gt 0 ] || return 0

	local log=$build/apt-install.log

	command -v apt-get >/dev/null || die "missing: ${missing[*]}, and there is no apt-get to install it"
	[ "$(id -u)" = 0 ] || die "missing packages; as root: apt-get install ${missing[*]}"
	say "installing ${missing[*]}"
	(
		flock 9
		export DEBIAN_FRONTEND=noninteractive
		install=(apt-get install -y --no-install-recommends "${missing[@]}")
		"${install[@]}" </dev/null >"$log" 2>&1 ||
		{ apt-get update && "${install[@]}"; } </dev/null >>"$log" 2>&1
	) 9>"$build/apt-install.lock" ||
		die "cannot install ${missing[*]}: $(grep -E '^(E:|W:)' "$log" | tail -n 1)
  log: $log; check the network and apt's sources, or install by hand"
}

# own_apt FOLDER SUITE ARGUMENT ... - apt-get from the machine's Debian mirror, with sources, lists,
# cache and an empty list of what is installed of its own: the machine's apt stays as it is.
own_apt()
{
	local apt=$1 suite=$2 site codename
	shift 2

	need /usr/share/keyrings/debian-archive-keyring.gpg:debian-archive-keyring
	mkdir -p "$apt/lists/partial" "$apt/cache/archives/partial"
	codename=$(sed -n 's/^VERSION_CODENAME=//p' /etc/os-release)
	# shellcheck disable=SC2016 # apt's own variables
	site=$(apt-get indextargets --no-release-info --format '$(SITE) $(RELEASE)' 'Created-By: Packages' 'Component: main' |
		awk -v c="$codename" '$2 == c || $2 == "stable" { print $1; exit }')
	[ -n "$site" ] || { echo "E: no Debian mirror in this machine's apt sources" >"$apt/log"; return 1; }
	: >"$apt/status"
	cat >"$apt/sources.list" <<-EOF
	deb [signed-by=/usr/share/keyrings/debian-archive-keyring.gpg] $site $suite main
	EOF
	cat >"$apt/apt.conf" <<-EOF
	Dir::Etc::SourceList "$apt/sources.list";
	Dir::Etc::SourceParts "-";
	Dir::State::Lists "$apt/lists";
	Dir::State::Status "$apt/status";
	Dir::Cache "$apt/cache";
	APT::Sandbox::User "root";
	EOF
	(
		export APT_CONFIG=$apt/apt.conf
		cd "$apt" && apt-get update --error-on=any && apt-get "$@"
	) >"$apt/log" 2>&1 </dev/null
}

# need_guest [COMMAND:PACKAGE ...] - what scripts/guest runs on, and more.
need_guest()
{
	# Debian's plain busybox is another package with the same file; the guest has no libc for it.
	if ldd /bin/busybox 2>/dev/null | grep -q libc; then
		set -- /bin/busybox-static:busybox-static "$@"
	fi
	need qemu-system-x86_64:qemu-system-x86 /bin/busybox:busybox-static cpio:cpio "$@"
}

# lock NAME - one such script at a time in this build folder; released on exit.
lock()
{
	local fd

	exec {fd}>"$build/.lock-$1"
	flock -n "$fd" && return
	say "waiting for another $1 in $build"
	flock -w 3600 "$fd" || die "still locked after an hour: $build/.lock-$1 (see: fuser -v it)"
}

# space MIB DIR - fail early and clearly rather than in the middle of a write.
space()
{
	local free

	free=$(df -Pm "$2" | awk 'NR == 2 { print $4 }')
	[ "$free" -ge "$1" ] || die "$2 has $free MiB free, $1 MiB are needed: make room, or move build/ elsewhere and link it"
}

# The patches of `series`, in order, as paths below patches/.
series()
{
	sed 's/[[:space:]]*#.*//; s/[[:space:]]*$//; /^$/d' "$top/series"
}

tree_git()
{
	git -C "$tree" "$@"
}

# What branch queue was last made from or refreshed to: "SUM COMMIT".
queue_stamp=$tree/.git/gup-track-queue

write_stamp()
{
	echo "$1" >"$queue_stamp.new"
	mv "$queue_stamp.new" "$queue_stamp"
}

# queue_sum - changes when the series, a patch or the base does.
queue_sum()
{
	(
		cd "$top/patches"
		series
		series | xargs -r sha1sum --
		tree_git rev-parse base
	) | sha1sum | cut -d' ' -f1
}

# A commit of everything in a tree as it stands, committed or not.
snapshot()
{
	local stash

	stash=$(git -C "$1" -c user.name=snapshot -c user.email=snapshot@localhost stash create)
	echo "${stash:-$(git -C "$1" rev-parse HEAD)}"
}

clean_tree()
{
	[ -z "$(git -C "$1" status --porcelain --untracked-files=no | head -n 1)" ]
}

# elapsed SECONDS - 4:05
elapsed()
{
	printf '%d:%02d' $(($1 / 60)) $(($1 % 60))
}

# The second checkout, for building commits other than build/linux as it stands.
# The caller holds the lock "scratch".
scratch_checkout()
{
	local git_dir

	# Not there, or left from a build/linux that is gone.
	if ! git_dir=$(git -C "$scratch" rev-parse --git-dir 2>/dev/null) ||
	   ! git -C "$scratch" rev-parse -q --verify "$1^{commit}" >/dev/null 2>&1 ||
	   [ "$(git -C "$scratch" rev-parse --show-toplevel)" != "$scratch" ]; then
		rm -rf "$scratch"
		tree_git worktree prune
		tree_git worktree add -q --detach "$scratch" "$1" >&2 || die "cannot make the checkout $scratch"
		git_dir=$(git -C "$scratch" rev-parse --git-dir)
	fi
	# What a killed run may have left in a checkout that is ours alone.
	rm -rf "$git_dir/index.lock" "$git_dir/rebase-apply"
	git -C "$scratch" checkout -q --force --detach "$1" || die "cannot check out $1 in $scratch"
}

# build_selftests FOLDER PROGRAM ... - kselftests of build/linux, into build/selftests/FOLDER.
build_selftests()
{
	local folder=$1 out=$build/selftests/$1 log=$build/selftests/$1.log
	shift

	need "${kernel_tools[@]}" /usr/include/liburing.h:liburing-dev \
		/usr/include/sys/capability.h:libcap-dev /usr/include/numa.h:libnuma-dev
	mkdir -p "$out"
	{
		flock 9
		{
			make -C "$tree" O="$build/headers" headers &&
			make -C "$tree/tools/testing/selftests/$folder" OUTPUT="$out" \
				KHDR_INCLUDES="-isystem $build/headers/usr/include" "${@/#/$out/}"
		} >"$log" 2>&1 || die "cannot build the $folder selftests: $(grep -m 1 -E 'error|Error' "$log")
  log: $log"
	} 9>"$build/selftests/.lock"
}

# What one boot of the job bench and the reading of its results need: gup_test and bench/compare.
build_bench()
{
	build_selftests mm gup_test
	make -s -C "$top/bench" O="$build/bench" >"$build/bench.log" 2>&1 ||
		die "cannot build bench/compare: $(tail -n 3 "$build/bench.log")"
}

# A commit as a patch, whose bytes depend on the commit alone and on nobody's settings.
format_patch()
{
	GIT_CONFIG_GLOBAL=/dev/null GIT_CONFIG_SYSTEM=/dev/null \
	git -C "$1" format-patch -1 --stdout --zero-commit --no-signature --full-index \
		--no-numbered --no-renames --diff-algorithm=myers --stat=72 "$2"
}

# The test folders below tools/testing/selftests that a commit (queue) has and base has not.
queue_selftests()
{
	tree_git diff --name-only --diff-filter=A base "${1:-queue}" -- tools/testing/selftests |
		cut -d/ -f4 | sort -u |
		while read -r folder; do
			tree_git cat-file -e "base:tools/testing/selftests/$folder" 2>/dev/null || echo "$folder"
		done
}

# kernel_make SOURCE OBJECTS TARGET ... - the same command line everywhere, for ccache's sake.
kernel_make()
{
	local src=$1 objects=$2
	shift 2

	CCACHE_BASEDIR=$build CCACHE_NOHASHDIR=1 CCACHE_DEPEND=1 CCACHE_COMPILERCHECK=content \
	CCACHE_SLOPPINESS=time_macros,include_file_mtime,include_file_ctime \
	KBUILD_BUILD_USER=gup-track KBUILD_BUILD_HOST=gup-track KBUILD_BUILD_VERSION=1 \
	KBUILD_BUILD_TIMESTAMP='Sun Nov 15 00:00:00 UTC 2026' \
	make -C "$src" O="$objects" CC="ccache gcc" -j"$(nproc)" "$@" </dev/null
}

# The configs/ files of a flavour.
fragments()
{
	sed -n "s/^$1:[[:space:]]*//p" "$top/configs/flavours" | tr -s ' ' '\n' |
		sed "s,.*,$top/configs/&.config,"
}

kernel_tools=(gcc:gcc /usr/include/stdio.h:libc6-dev make:make flex:flex bison:bison bc:bc xz:xz-utils
	git:git python3:python3 ccache:ccache rsync:rsync /usr/include/libelf.h:libelf-dev
	/usr/include/openssl/opensslv.h:libssl-dev)
