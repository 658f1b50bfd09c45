/* The command: finds the subcommand, answers --help and --version, and the nearest right name for a wrong one. */
#include <signal.h>
#include <string.h>

#include "cli/cli.h"

static const struct command {
    const char *name;
    int (*run)(int argc, char **argv);
    const char *help;
} commands[] = {
    {"generate", nib_cli_generate, "write what a model says after a prompt"},
    {"tokenize", nib_cli_tokenize, "text to token ids"},
    {"detokenize", nib_cli_detokenize, "token ids to text"},
    {"show", nib_cli_show, "what is in a model file"},
    {"bench", nib_cli_bench, "how fast a model computes here, beside the machine's limits"},
};

enum { N_COMMANDS = sizeof commands / sizeof commands[0] };

static int print_help(void) {
    printf("nib %s: generate text with language models on a plain CPU; same seed, same words.\n\n"
           "usage: nib COMMAND [flags]\n\ncommands\n",
           nib_version());
    for (size_t i = 0; i < N_COMMANDS; i++) {
        printf("    %-12s %s\n", commands[i].name, commands[i].help);
    }
    printf("\nTo begin, with a model file in the GGUF format:\n"
           "    nib generate -m model.gguf -p \"Once upon a time\"\n"
           "    nib generate -m random:llama-tiny --prompt-ids 1,2,3     (random weights, no file needed)\n\n"
           "nib COMMAND --help lists a command's flags; nib --version the version.\n"
           "Exit codes: 0 ok, 1 other, 2 usage, 3 model file, 4 input, 5 memory, 6 refused, 7 not checked,\n"
           "130 Ctrl-C\n");
    return nib_cli_finish_output(NIB_EXIT_OK);
}

static int say_unknown(const char *name) {
    const char *names[N_COMMANDS + 1];
    size_t len;
    for (size_t i = 0; i < N_COMMANDS; i++) {
        names[i] = commands[i].name;
    }
    names[N_COMMANDS] = "--help --version";
    bool is_flag = name[0] == '-';
    const char *nearest = is_flag ? nib_cli_nearest(&len, names + N_COMMANDS, 1, name, strlen(name))
                                  : nib_cli_nearest(&len, names, N_COMMANDS, name, strlen(name));
    nib_cli_say("%s: unknown %s, the nearest is %.*s; see nib --help", name, is_flag ? "flag" : "command", (int)len,
                nearest);
    return NIB_EXIT_USAGE;
}

int main(int argc, char **argv) {
    /* A reader that goes away is an error of writing, with an exit code of ours. */
    (void)signal(SIGPIPE, SIG_IGN);
    if (argc < 2) {
        nib_cli_say("no command, expected one of generate, tokenize, detokenize, show, bench; see nib --help");
        return NIB_EXIT_USAGE;
    }
    if (strcmp(argv[1], "--help") == 0 || strcmp(argv[1], "-h") == 0 || strcmp(argv[1], "help") == 0) {
        return print_help();
    }
    if (strcmp(argv[1], "--version") == 0) {
        printf("nib %s (numeric contract %d)\n", nib_version(), nib_contract_version());
        return nib_cli_finish_output(NIB_EXIT_OK);
    }
    for (size_t i = 0; i < N_COMMANDS; i++) {
        if (strcmp(argv[1], commands[i].name) == 0) {
            return commands[i].run(argc - 1, argv + 1);
        }
    }
    return say_unknown(argv[1]);
}
