#!/usr/bin/env bash
# Writes NOTICE: the third-party code that is linked into the programs of cmd/,
# with its licences, as google/go-licenses finds them, for all platforms of a
# release, and the dependencies of the pages. Run it after changing go.mod
# or query/web/package.json and commit the result:
#
#   deploy/tools/notice.sh
#
# go-licenses is run by version instead of as a tool of go.mod here, so that its own
# dependencies do not change those of the generators and linters.
set -euo pipefail
cd "$(dirname "$0")/../.."
export LC_ALL=C
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
GOBIN=$work go install github.com/google/go-licenses@v1.6.0

tab=$'\t'
printf '{{range .}}{{.Name}}\t{{.Version}}\t{{.LicenseName}}\t{{.LicensePath}}\n{{end}}' >"$work/line"
for platform in linux/amd64 linux/arm64 darwin/amd64 darwin/arm64; do
  # Its warnings are about the URLs of licences, which are not used here.
  GOOS=${platform%/*} GOARCH=${platform#*/} CGO_ENABLED=0 "$work/go-licenses" report ./cmd/... \
    --ignore "$(go list -m)" --template "$work/line" >>"$work/found" 2>"$work/log" || { cat "$work/log" >&2; exit 1; }
done

# Exceptions that the tool cannot know:
# - go-ethereum has two licence files in one folder; all code outside its cmd/, which
#   is all we use, is under the Lesser one, according to the header of each file.
# - it does not know MIT-0, so it finds no licence file for segmentio/asm.
asm=$(go list -m -f '{{.Dir}}' github.com/segmentio/asm)
sort -u "$work/found" | awk -F '\t' -v OFS='\t' -v asm="$asm" '
  NF == 0 { next }
  $1 == "github.com/ethereum/go-ethereum" { $3 = "LGPL-3.0"; sub(/COPYING$/, "COPYING.LESSER", $4) }
  $1 ~ "^github.com/segmentio/asm/" { $1 = "github.com/segmentio/asm"; $3 = "MIT-0"; $4 = asm "/LICENSE" }
  { print }' | sort -u >"$work/all"
printf 'Go (standard library)\t%s\tBSD-3-Clause\t%s\n' "$(sed -n 's/^go \(.*\)/go\1/p' go.mod)" "$(go env GOROOT)/LICENSE" >>"$work/all"
# The packages that esbuild bundles into query/web/dist.
make --silent query/web/node_modules/.ready
for package in $(node -p 'Object.keys(require("./query/web/package.json").dependencies).join(" ")'); do
  at=query/web/node_modules/$package
  printf '%s (in the pages)\t%s\t%s\t%s\n' "$package" "$(node -p "require('./$at/package.json').version")" "$(node -p "require('./$at/package.json').license")" "$at/LICENSE" >>"$work/all"
done

if unknown=$(grep -E "${tab}(Unknown|)${tab}" "$work/all"); then
  printf 'no licence is known for:\n%s\n' "$unknown" >&2
  exit 1
fi
# Licences that may be linked into a program under Apache-2.0; a person must decide about any other.
if strange=$(awk -F '\t' '$3 !~ /^(Apache-2.0|MIT|MIT-0|ISC|BSD-2-Clause|BSD-2-Clause-FreeBSD|BSD-3-Clause|LGPL-3.0|Unlicense)$/' "$work/all") && [ -n "$strange" ]; then
  printf 'a licence that nobody has decided about:\n%s\n' "$strange" >&2
  exit 1
fi

text() { # file: its text, without carriage returns and trailing white space
  tr -d '\r' <"$1" | sed -e 's/[[:space:]]*$//'
}

{
  printf 'navlog\nCopyright The navlog authors\n\nLicensed under the Apache License, Version 2.0: see LICENSE.\n\n'
  printf 'The programs contain the software that is listed below, under its own licences, whose\ntexts follow. This file is written by deploy/tools/notice.sh.\n\n'
  printf 'The tests have data of github.com/ethereum-optimism/optimism (MIT, Copyright 2020-2025 Optimism):\nsee schemas/chainproof/testdata/README.md.\n\n'
  awk -F '\t' '{ printf "%-66s %-44s %s\n", $1, $2, $3 }' "$work/all" | sed 's/ *$//'

  cut -f4 "$work/all" | while read -r path; do
    for notice in "$(dirname "$path")"/NOTICE*; do
      [ ! -e "$notice" ] || printf '%s\t%s\n' "$(awk -F '\t' -v p="$path" '$4 == p { print $1; exit }' "$work/all")" "$notice"
    done
  done | sort -u | while IFS=$tab read -r name notice; do
    printf '\n%s\nNOTICE of %s\n\n' "$(printf '=%.0s' {1..80})" "$name"
    text "$notice"
  done

  # Identical texts are printed once, in the order of the first name that has them.
  while IFS=$tab read -r name _ _ path; do
    printf '%s\t%s\t%s\n' "$(text "$path" | sha256sum | cut -d' ' -f1)" "$name" "$path"
  done <"$work/all" >"$work/texts"
  awk -F '\t' '!($1 in seen) { seen[$1]; print $1 "\t" $3 }' "$work/texts" | while IFS=$tab read -r sum path; do
    printf '\n%s\nLicence of:\n' "$(printf '=%.0s' {1..80})"
    awk -F '\t' -v sum="$sum" '$1 == sum { print "  " $2 }' "$work/texts"
    printf '\n'
    text "$path"
    # The Lesser licence is an addition to the full one, which is in the same folder.
    [ "${path##*/}" != COPYING.LESSER ] || { printf '\n'; text "${path%.LESSER}"; }
  done
} >"$work/NOTICE"
cp "$work/NOTICE" NOTICE
printf 'NOTICE: %s modules and packages, %s bytes\n' "$(wc -l <"$work/all")" "$(wc -c <NOTICE)"
