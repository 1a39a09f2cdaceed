package structure

import (
	"cmp"
	"fmt"
	"go/ast"
	"go/parser"
	"go/token"
	"io/fs"
	"os"
	"path"
	"regexp"
	"slices"
	"strings"
	"testing"
)

// words lists words that make a sentence hard to read, each with what to write instead. A phrase also matches across a
// line break.
var words = []struct{ find, write string }{
	{`anew`, "again, or rebuild"},
	{`alone`, "only"},
	{`whoever`, "the actor: the program, the function, the caller"},
	{`nobody|somebody`, "the actor: no program, no partner, a caller"},
	{`what is so`, "what holds, or what changed"},
	{`(?:is|are|was|were|be|been) told`, "is notified, receives, learns"},
	{`(?:take|takes|took|taken|taking) back`, "retract (a log), orphan (a block), revoke (a right)"},
	{`(?:hold|holds|held|holding)(?: it| them)? against`, "compare with, verify against"},
	{`(?:hold|holds|held) side by side`, "compare"},
	{`(?:try|tries|tried|trying) again`, "retry"},
	{`(?:go|goes|went|going|gone) on`, "continue"},
	{`gave up|given up`, "failed, or gave up after N attempts with the number"},
	{`(?:is|are|was|were) to be`, "must be, or the verb"},
	{`(?:believe|believes|believed|believing|beliefs?)`, "accept, unproven, trust"},
	{`(?:answer|answers|answered) (?:with )?(?:2xx|[2-5][0-9][0-9])`, "respond with"},
	{`(?:ask|asks|asked|asking) (?:a|the|an|another|one|each|any|every) (?:nodes?|endpoints?|API|chain|registry)`,
		"call, request"},
	{`(?:say|says|said|saying) so`, "report this"},
	{`(?:says|said|saying) nothing`, "unknown, silent, no heartbeat"},
	{`of ours`, "of navlog, of a vault, known"},
	{`(?:bury|buries|buried)`, "dead letter"},
	{`(?:adopt|adopts|adopting)`, "backfill"}, // adopted is a table
	{`(?:give|gives|gave|giving|given) away`, "release (a partner, a lease)"},
	{`stor(?:y|ies)`, "scenario, history"},
	{`parcels?`, "delivery"},
	{`mend(?:s|ed|ing)?`, "fix"},
	{`strangers?`, "the source: a node, a contract, a receiver"},
	{`most (?:there are|that there are)`, "at most N"},
	{`in all there`, "total"},
	{`as gladly`, "as well"},
}

// plainPages are the pages to which the list applies.
var plainPages = []string{
	"README.md", "CONTRIBUTING.md", "SECURITY.md", "CHANGELOG.md", "docs/architecture.md", "docs/api.md",
	"docs/webhooks.md",
	"docs/upgrading.md", "docs/sql.md", "docs/mappings.md", "docs/operations.md", "docs/ingest-cost.md",
	"docs/benchmarks.md", "docs/sizing.md", "docs/operations-dispatch.md",
	"docs/metrics.md", "docs/adr/*.md", "schemas/webhook/samples/README.md", "schemas/chainproof/testdata/README.md",
	".github/pull_request_template.md",
}

var wordPatterns = func() (patterns []*regexp.Regexp) {
	for _, w := range words {
		patterns = append(patterns, regexp.MustCompile(`(?i)\b(?:`+strings.ReplaceAll(w.find, " ", `\s+`)+`)\b`))
	}
	return patterns
}()

// exception allows a word on its line. It names the word and the reason: <!-- words: "alone": the name of a flag --> in
// a page, // words: "alone": the name of a flag in Go.
var exception = regexp.MustCompile(`words: "([^"]+)": \S+`)

// TestPlainWords checks pages, and the comments and strings of all Go files, against the list of words.
func TestPlainWords(t *testing.T) {
	root := os.DirFS("../../..")
	for _, pattern := range plainPages {
		pages, err := fs.Glob(root, pattern)
		if err != nil || len(pages) == 0 {
			t.Errorf("no page is named %s: %v", pattern, err)
		}
		for _, page := range pages {
			b, err := fs.ReadFile(root, page)
			if err != nil {
				t.Fatal(err)
			}
			report(t, page, string(b), pageProse(string(b)))
		}
	}
	files := 0
	err := fs.WalkDir(root, ".", func(file string, entry fs.DirEntry, err error) error {
		switch {
		case err != nil:
			return err
		case entry.IsDir() && file != "." && (entry.Name() == "node_modules" || strings.HasPrefix(entry.Name(), ".") ||
			slices.Contains(generatedFolders, file)):
			return fs.SkipDir
		case path.Ext(file) != ".go" || file == "deploy/check/structure/words_test.go": // the list itself
			return nil
		}
		b, err := fs.ReadFile(root, file)
		if err != nil {
			return err
		}
		files++
		report(t, file, string(b), goProse(t, file, string(b)))
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
	if files < 500 {
		t.Errorf("only %d Go files were checked", files)
	}
}

func report(t *testing.T, file, text, prose string) {
	t.Helper()
	for _, f := range findWords(text, prose) {
		t.Errorf("%s:%d: %s", file, f.line, f.what)
	}
}

// finding is a forbidden word on a line, or an exception that is not needed.
type finding struct {
	line int
	what string
}

// findWords returns the findings in prose, ordered by line. prose is text with everything else blanked out.
func findWords(text, prose string) (found []finding) {
	type place struct {
		line int
		word string
	}
	allowed := map[place]bool{} // whether it was used
	for i, line := range strings.Split(text, "\n") {
		if m := exception.FindStringSubmatch(line); m != nil {
			allowed[place{i + 1, strings.ToLower(m[1])}] = false
		}
	}
	for i, pattern := range wordPatterns {
		for _, at := range pattern.FindAllStringIndex(prose, -1) {
			line := 1 + strings.Count(prose[:at[0]], "\n")
			word := strings.Join(strings.Fields(prose[at[0]:at[1]]), " ")
			if p := (place{line, strings.ToLower(word)}); hasKey(allowed, p) {
				allowed[p] = true
				continue
			}
			found = append(found, finding{line, fmt.Sprintf("%q: write %s", word, words[i].write)})
		}
	}
	for p, used := range allowed {
		if !used {
			found = append(found, finding{p.line, fmt.Sprintf("the exception for %q allows nothing", p.word)})
		}
	}
	slices.SortFunc(found, func(a, b finding) int { return cmp.Or(a.line-b.line, strings.Compare(a.what, b.what)) })
	return found
}

func hasKey[K comparable, V any](m map[K]V, key K) bool {
	_, ok := m[key]
	return ok
}

var pageCode = regexp.MustCompile("(?ms)^ *```.*?^ *```$|`[^`\n]*`|<!--.*?-->")

// pageProse blanks out the code and the comments of a page.
func pageProse(page string) string {
	return pageCode.ReplaceAllStringFunc(page, blank)
}

// blank replaces every byte except white space, so that positions stay the same.
func blank(s string) string {
	b := []byte(s)
	for i, c := range b {
		if !strings.ContainsRune(" \t\r\n", rune(c)) {
			b[i] = '.'
		}
	}
	return string(b)
}

// goProse blanks out everything in a Go file except comments and strings, and all of a generated file.
func goProse(t *testing.T, name, source string) string {
	t.Helper()
	files := token.NewFileSet()
	file, err := parser.ParseFile(files, name, source, parser.ParseComments)
	if err != nil {
		t.Fatal(err)
	}
	prose := []byte(blank(source))
	if ast.IsGenerated(file) {
		return string(prose)
	}
	keep := func(n ast.Node) {
		from, to := files.Position(n.Pos()).Offset, files.Position(n.End()).Offset
		copy(prose[from:to], source[from:to])
	}
	ast.Inspect(file, func(n ast.Node) bool {
		if literal, ok := n.(*ast.BasicLit); ok && literal.Kind == token.STRING {
			keep(literal)
		}
		return true
	})
	for _, group := range file.Comments {
		for _, comment := range group.List {
			keep(comment)
			if from := files.Position(comment.Pos()).Offset; !strings.Contains(comment.Text, `words: "`) {
				copy(prose[from:], "  ") // a phrase may continue across a line break, and so across the next //
			} else {
				copy(prose[from:], blank(comment.Text))
			}
		}
	}
	return string(prose)
}

// TestPlainWordsAreFound: words in prose are found, words in code are not, and an exception that is not needed is
// reported.
func TestPlainWordsAreFound(t *testing.T) {
	for name, c := range map[string]struct {
		text, prose string
		want        []string
	}{
		"a page": {
			text: "The list is made anew. `alone` is a flag.\n\n```sh\nnavlog alone\n```\nThe caller is\ntold of it.\n",
			want: []string{`1: "anew": write again, or rebuild`, `6: "is told": write is notified, receives, learns`},
		},
		"an exception": {
			text: "--only alone <!-- words: \"alone\": a name -->\n<!-- words: \"anew\": a name -->\nStandalone.\n",
			want: []string{`2: the exception for "anew" allows nothing`},
		},
		"an exception without a reason": {
			text: "alone <!-- words: \"alone\" -->\n",
			want: []string{`1: "alone": write only`},
		},
		"a Go file": {
			text: "// Package p → is what it\n// takes\n// back.\npackage p\n\nvar anew = \"nobody\"\n\nconst x = \"alone\" " +
				"// words: \"alone\": a name\n",
			want: []string{`2: "takes back": write retract (a log), orphan (a block), revoke (a right)`,
				`6: "nobody": write the actor: no program, no partner, a caller`},
		},
	} {
		t.Run(name, func(t *testing.T) {
			prose := pageProse(c.text)
			if strings.HasPrefix(c.text, "//") {
				prose = goProse(t, "p.go", c.text)
			}
			var got []string
			for _, f := range findWords(c.text, prose) {
				got = append(got, fmt.Sprintf("%d: %s", f.line, f.what))
			}
			if !slices.Equal(got, c.want) {
				t.Errorf("found %q, want %q", got, c.want)
			}
		})
	}
}
