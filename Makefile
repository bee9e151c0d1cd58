# SPDX-License-Identifier: GPL-2.0
#
# The top-level Makefile: names for what the parts do themselves. The module is
# built by kbuild from Kbuild, in build/, so that several kernels can be built
# side by side and the checkout stays clean.

KDIR ?= /lib/modules/$(shell uname -r)/build
PREFIX ?= /usr/local
DESTDIR ?=
# From here, whatever folder a part is made in
ifneq ($(DESTDIR),)
ifeq ($(filter /%,$(firstword $(DESTDIR))),)
override DESTDIR := $(CURDIR)/$(DESTDIR)
endif
endif
B := $(CURDIR)/build

.DEFAULT_GOAL := all
.PHONY: all kmod ulib demo deb rpm check check-smp-debug check-threads check-kcsan check-rough check-faults check-slurm check-huge check-packages fuzz mutants coverage bench lint install clean help

# A machine without headers for its own kernel still builds what it can use.
all: $(if $(KERNEL)$(wildcard $(KDIR)/Makefile),kmod,no-kmod) ulib	## the module for the running kernel, the library and the tool

.PHONY: no-kmod
no-kmod:
	@echo "kmod: left out, for there is no kernel build directory at $(KDIR) (make kmod tells more)" >&2

# KERNEL=uml|uml-debug|uml-gcov|smp-debug|smp-kcsan|6.1|6.12: one of the lab's kernels. Else KDIR, by default the
# running kernel's
kmod:			## the module: KDIR=..., or KERNEL=6.1|6.12|uml of the lab; OFED=... for a vendor's RDMA core
ifdef KERNEL
	tests/lab/kmake $(KERNEL) $(B)/kmod/$(KERNEL)
else
	@if [ ! -e "$(KDIR)/Makefile" ]; then \
		echo "kmod: no kernel build directory at $(KDIR): install the headers of your kernel (linux-headers-$$(uname -r)), or name one with KDIR=, or try a kernel of the lab with KERNEL=6.1" >&2; \
		exit 1; \
	fi
	@mkdir -p $(B)/kmod/native
	@cp -Rpu Kbuild kmod uapi $(B)/kmod/native/
	$(MAKE) -C "$(KDIR)" M=$(B)/kmod/native W=1 modules
	@echo "built $(B)/kmod/native/rdmatensor.ko"
endif

ulib:			## librdmatensor and the rdmatensor tool
	$(MAKE) -C ulib O=$(B)/ulib KDIR="$(KDIR)"

demo:			## a model's tensors, moved between two machines; NATIVE=1: on this one's RDMA device
	tests/demo/run

check:			## all tests, on the lab's kernels; SUITE=: those alone (tests/check --list)
	tests/check $(SUITE)

# Not the environment's SECONDS, which a shell may have exported
ifeq ($(origin SECONDS),command line)
FOR := --seconds $(SECONDS)
endif
check-smp-debug:	## the stress and KUnit on two processors with all checks (half an hour, not in CI)
	tests/stress/smp-debug

check-threads:		## many threads on the same handles for SECONDS=600 on each of 6.1, 6.12 and smp-debug, from SEED=
	tests/threads/long $(FOR) $(if $(SEED),--seed $(SEED))

check-kcsan:		## KUnit, and stress and threads for SECONDS=600 each, on a kernel that looks for data races
	tests/threads/kcsan $(FOR)

check-rough:		## each call of each command fails in turn, and it is killed at 50 moments, from SEED=
	tests/rough/long $(if $(SEED),--seed $(SEED))

check-faults:		## each of some hundred points of failure in a life, in both modes
	tests/fault/each

check-slurm:		## two guests as a cluster of slurm: ranks that srun and mpirun start, and one that is killed
	tests/slurm/run

check-huge:		## tensors of 2 and of more than 4 GiB, in a guest with 10 GiB of memory
	tests/system/huge

fuzz:			## the fuzzers for SECONDS=60 each, from SEED=
	tests/fuzz/run $(FOR) $(if $(SEED),--seed $(SEED))

mutants:		## breaks each rule on purpose: every breach must be noticed
	tests/mutants/run

coverage:		## lines of the module that the tests reach, on a kernel that counts
	tests/coverage/run

bench:			## figures beside peers, into build/bench.json
	tests/bench/run

check-packages:		## what make deb builds, installed in a fresh Debian 12, used and purged (not in CI)
	tests/packages/check

deb:			## Debian packages of what is committed, into build/deb; CLEAN=1: built in a clean chroot
	packaging/deb $(if $(CLEAN),--clean) $(if $(MAINTAINER),"$(MAINTAINER)")

rpm:			## RPM packages of what is committed, into build/rpm (written for Fedora and RHEL, not tried there)
	packaging/rpm/build $(RPMBUILD_OPTIONS)

lint:			## style, static analysis, licences
	tests/lint/run

# A machine without headers for its own kernel gets the library and the tool
install: $(if $(wildcard $(KDIR)/Makefile),install-kmod,no-kmod) install-ulib install-host	## DESTDIR=, PREFIX=; the module goes to the running kernel's folder

.PHONY: install-kmod install-ulib install-host uninstall
install-kmod: kmod
	$(MAKE) -C "$(KDIR)" M=$(B)/kmod/native modules_install INSTALL_MOD_PATH="$(DESTDIR)"

install-ulib: ulib	## the library and the tool alone
	$(MAKE) -C ulib O=$(B)/ulib install DESTDIR="$(DESTDIR)" PREFIX="$(PREFIX)" KDIR="$(KDIR)"

install-host: ulib	## the udev rule, the group, the unit, what loads the module and its parameters
	$(MAKE) -C packaging O=$(B)/ulib install DESTDIR="$(DESTDIR)" PREFIX="$(PREFIX)"

# modules_install puts it into one of two folders, which depends on the kernel
uninstall:		## what install has put there, with the same DESTDIR= and PREFIX=
	$(MAKE) -C ulib O=$(B)/ulib uninstall DESTDIR="$(DESTDIR)" PREFIX="$(PREFIX)"
	$(MAKE) -C packaging O=$(B)/ulib uninstall DESTDIR="$(DESTDIR)" PREFIX="$(PREFIX)"
	@for module in "$(DESTDIR)"/lib/modules/*/extra/rdmatensor.ko* "$(DESTDIR)"/lib/modules/*/updates/rdmatensor.ko*; do \
		[ -e "$$module" ] || continue; \
		rm -v "$$module"; \
		[ -n "$(DESTDIR)" ] || depmod "$$(basename "$$(dirname "$$(dirname "$$module")")")"; \
	done

clean:			## remove build/
	rm -rf "$(B)"

help:			## this list
	@awk -F ':.*## *' '/^[a-z-]+:.*##/ { sub(/:.*/, "", $$1); printf "  %-15s %s\n", $$1, $$2 }' $(MAKEFILE_LIST)
