# Numbers are written and read with a point, whatever the locale says.
. "$CLI_LIB"
mkdir locales
if ! locale -a 2>/dev/null | grep -q -i '^de_DE\.utf-\{0,1\}8$'; then
    localedef -i de_DE -f UTF-8 locales/de_DE.UTF-8 2>/dev/null || skip "no locale de_DE.UTF-8, and none can be made"
    export LOCPATH="$PWD/locales"
fi
comma=$(LC_ALL=de_DE.UTF-8 env printf '%.1f' 0,5 2>/dev/null) || comma=
[ "$comma" = 0,5 ] || skip "the locale de_DE.UTF-8 has no decimal comma here"
set -- generate -m random:llama-tiny --prompt-ids 1 -n 5 --seed 1 --json --temperature 0.7 --top-p 0.95
LC_ALL=C quiet "$@" >point
LC_ALL=de_DE.UTF-8 LANG=de_DE.UTF-8 quiet "$@" >comma
cmp point comma
cat comma
LC_ALL=de_DE.UTF-8 try generate -m none.gguf --temperature 0,7
