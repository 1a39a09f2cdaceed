package main

import (
	"fmt"
	"strings"

	"github.com/alecthomas/kong"

	"github.com/navlog/navlog/cmd/internal/cli"
)

type completionCmd struct {
	Shell string `arg:"" enum:"bash,zsh,fish" help:"bash, zsh or fish."`
}

// Help explains how to use the script.
func (completionCmd) Help() string {
	return "bash: source <(navlog completion bash); zsh, after compinit: source <(navlog completion zsh); fish: navlog " +
		"completion fish | source. Put the line into the shell's own start file."
}

// Run prints a script that does not call navlog: it contains the commands and flags of this version of navlog.
func (cmd completionCmd) Run(s *cli.Streams, app *kong.Kong) error {
	script := bashCompletion(app.Model.Node)
	switch cmd.Shell {
	case "zsh":
		script = "autoload -Uz bashcompinit && bashcompinit\n" + script
	case "fish":
		script = fishCompletion(app.Model.Node)
	}
	_, err := fmt.Fprint(s.Out, script)
	return err
}

// bashCompletion completes a command with its subcommands, and with the flags of the command and its parents.
func bashCompletion(n *kong.Node) string {
	var b, paths, words strings.Builder
	walk(n, "", func(path string, n *kong.Node) {
		if path != "" {
			fmt.Fprintf(&paths, "    %q) path=%q ;;\n", path, path)
		}
		fmt.Fprintf(&words, "  %q) word=\"", path)
		for _, flags := range n.AllFlags(true) {
			for _, f := range flags {
				fmt.Fprintf(&words, "--%s ", f.Name)
			}
		}
		for _, child := range n.Children {
			if !child.Hidden {
				fmt.Fprintf(&words, "%s ", child.Name)
			}
		}
		words.WriteString("\" ;;\n")
	})
	b.WriteString("_navlog() {\n  local path='' word i\n  for ((i = 1; i < COMP_CWORD; i++)); do\n    " +
		"word=${COMP_WORDS[i]}\n    case \"$path $word\" in\n" + paths.String() + "    esac\n  done\n  case \"$path\" in\n" +
		words.String() + "  esac\n  COMPREPLY=($(compgen -W \"$word\" -- \"${COMP_WORDS[COMP_CWORD]}\"))\n}\ncomplete -o " +
		"default -F _navlog navlog\n")
	return b.String()
}

func fishCompletion(n *kong.Node) string {
	var b strings.Builder
	b.WriteString("complete -c navlog -f\n")
	walk(n, "", func(path string, n *kong.Node) {
		at := "__fish_use_subcommand"
		if path != "" {
			at = "__fish_seen_subcommand_from " + n.Name
		}
		for _, child := range n.Children {
			if !child.Hidden {
				fmt.Fprintf(&b, "complete -c navlog -n %q -a %s -d %q\n", at, child.Name, child.Help)
			}
		}
		for _, f := range n.Flags {
			if !f.Hidden {
				fmt.Fprintf(&b, "complete -c navlog -n %q -l %s -d %q\n", at, f.Name, f.Help)
			}
		}
	})
	return b.String()
}

// walk visits every visible command, with the words that lead to it.
func walk(n *kong.Node, path string, visit func(path string, n *kong.Node)) {
	visit(path, n)
	for _, child := range n.Children {
		if !child.Hidden {
			walk(child, path+" "+child.Name, visit)
		}
	}
}
