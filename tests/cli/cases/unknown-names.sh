. "$CLI_LIB"
try
try genrate
try tokenise
try show-me
try --verison
try -x
try generate --modle x
try generate --tempreature 1
try generate --top_p 0.5
try generate -x
try generate --cache-typ=f32
try tokenize --no-boss
try detokenize --jsn
try show --jso
