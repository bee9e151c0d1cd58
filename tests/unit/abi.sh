#!/bin/bash
# SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
#
# abi.sh DIR: a program of this tree's headers with a library of later ones, in which each of the
# kernel's structs that the program passes is 64 bytes longer; both with AddressSanitizer. And this
# tree's headers as C++. Works in DIR.
set -eu
top=$(cd "$(dirname "$0")/../.." && pwd)
later=$1
structs=(query start connect channel_query table_open op)
flags=(-std=gnu11 -g -O1 -fno-omit-frame-pointer -fsanitize=address -pthread)

rm -rf "$later"
mkdir -p "$later"
cp -r "$top/ulib" "$top/uapi" "$later"
for struct in "${structs[@]}"; do
	sed -i "/^struct rdmatensor_$struct {/,/^};/ s/^};/	__u64 later[8];\n};/" \
		"$later/uapi/rdmatensor.h"
done
[ "$(grep -c 'later\[8\]' "$later/uapi/rdmatensor.h")" = ${#structs[@]} ]
cc "${flags[@]}" -fPIC -shared -fvisibility=hidden -I "$later/ulib/include" \
	"$later"/ulib/lib/*.c -DRDMATENSOR_VERSION='"later"' -o "$later/librdmatensor.so" \
	-Wl,--version-script="$later/ulib/lib/librdmatensor.map"
cc "${flags[@]}" -Wall -Wextra -I "$top/ulib/include" "$top/tests/unit/abi/old.c" \
	-o "$later/old" -L "$later" -lrdmatensor
c++ -std=c++11 -Wall -Wextra -Wpedantic -Werror -I "$top/ulib/include" -c \
	"$top/tests/unit/abi/header.cc" -o "$later/header.o"
LD_LIBRARY_PATH=$later timeout 60 "$later/old"
echo "abi: a program of ${#structs[@]} shorter structs runs with a later library"
