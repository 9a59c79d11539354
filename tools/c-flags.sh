# How all of our C is compiled and linked; sourced by the build.sh files beside the sources.
#
#   warnings            for every compiler; each is an error
#   compile, link       for everything: addons (shared) and programs
#   musl_program        additionally for a static program with musl (position-independent: addresses are random)
#
# UNBOUNDED_NATIVE chooses a variant: release (default, stripped), symbols (the same code, not stripped: what the test of
# these flags reads), sanitized (AddressSanitizer and UndefinedBehaviorSanitizer, for tests; addons only).
# shellcheck shell=bash disable=SC2034
case $(uname -m) in
  x86_64) node_arch=x64 arch_protection=(-fcf-protection=full) ;;
  aarch64) node_arch=arm64 arch_protection=(-mbranch-protection=standard) ;;
  *) echo "$(uname -m) is not supported (x86_64, aarch64 are)" >&2; exit 1 ;;
esac

warnings=(
  -Wall -Wextra -Werror -Wformat=2 -Wformat-security -Wconversion -Wsign-conversion -Wshadow -Wvla
  -Wstrict-prototypes -Wpointer-arith -Wundef
)
link=(-Wl,-z,relro,-z,now -Wl,-z,noexecstack -Wl,-z,separate-code -Wl,--as-needed)

case ${UNBOUNDED_NATIVE:-release} in
  release | symbols)
    # -ftrivial-auto-var-init: what a function does not set holds nothing of another's.
    compile=(
      "${warnings[@]}" -D_FORTIFY_SOURCE=3 -fstack-protector-strong -fstack-clash-protection "${arch_protection[@]}"
      -ftrivial-auto-var-init=zero -fno-delete-null-pointer-checks -fno-strict-overflow
    )
    [ "${UNBOUNDED_NATIVE:-release}" = symbols ] || link+=(-s) ;;
  sanitized)
    compile=("${warnings[@]}" -g -fno-omit-frame-pointer -fsanitize=address,undefined -fno-sanitize-recover=all)
    link+=(-fsanitize=address,undefined) ;;
  *) echo "UNBOUNDED_NATIVE is $UNBOUNDED_NATIVE: release, symbols or sanitized" >&2; exit 2 ;;
esac

# musl-gcc knows no -static-pie: its own start file for one, and no interpreter. The order is that of the linker.
musl=/usr/lib/$(uname -m)-linux-musl
musl_program=(-fPIE -nostartfiles "$musl/rcrt1.o" "$musl/crti.o" "$musl/crtn.o" -static -Wl,-pie,--no-dynamic-linker,-z,text)
