package docs

import (
	"bytes"
	"embed"
	"encoding/json"
	"fmt"
	"html/template"
	"io/fs"
	"maps"
	"net/url"
	"path"
	"slices"
	"strings"

	"github.com/yuin/goldmark"
	"github.com/yuin/goldmark/ast"
	"github.com/yuin/goldmark/extension"
	"github.com/yuin/goldmark/parser"
	"github.com/yuin/goldmark/text"

	pages "github.com/navlog/navlog/docs"
	"github.com/navlog/navlog/query/serve"
	"github.com/navlog/navlog/schemas/openapi"
)

//go:embed shell.html page.html docs.html
var templateFiles embed.FS

var templates = template.Must(template.ParseFS(templateFiles, "*.html"))

// markdown renders a page. It drops raw HTML, and does not write column alignments as styles, which the page's
// content security policy would block.
var markdown = goldmark.New(
	goldmark.WithExtensions(extension.NewTable(extension.WithTableCellAlignMethod(extension.TableCellAlignAttribute))),
	goldmark.WithParserOptions(parser.WithAutoHeadingID()))

type page struct {
	Path  string
	Title string
	Body  template.HTML
	All   []page // for navigation between pages: those that are not listed under another page

	sections []section
}

// section is a search result: the text under a heading.
type section struct {
	Path  string `json:"path"`
	Page  string `json:"page"`
	Title string `json:"title"`
	Text  string `json:"text"`
}

// pageFiles returns the pages of docs/, the reference page of the API, and the search index.
func pageFiles() []serve.File {
	var all []page
	var found []section
	must(fs.WalkDir(pages.Pages, ".", func(name string, entry fs.DirEntry, err error) error {
		if err != nil || entry.IsDir() {
			return err
		}
		source, err := pages.Pages.ReadFile(name)
		if err != nil {
			return err
		}
		p, err := render(name, source)
		all, found = append(all, p), append(found, p.sections...)
		return err
	}))
	top := slices.DeleteFunc(slices.Clone(all), func(p page) bool { return path.Dir(p.Path) != "/docs" })
	var out []serve.File
	show := func(at, name string, data any) {
		var b bytes.Buffer
		must(templates.ExecuteTemplate(&b, name, data))
		out = append(out, serve.File{Path: at, Kind: "text/html; charset=utf-8", Body: b.Bytes()})
	}
	for _, p := range all {
		p.All = top
		show(p.Path, "page.html", p)
	}
	show("/docs", "docs.html", page{Path: "/docs", All: top})
	out = append(out, serve.File{Path: "/docs/reference.json", Kind: "application/json; charset=utf-8", Body: reference()})
	index, err := serve.Encode(append(found, operations()...))
	must(err)
	return append(out, serve.File{Path: "/docs/search.json", Kind: "application/json; charset=utf-8", Body: index})
}

// must panics on an error that cannot happen because its input is part of the binary and was tested.
func must(err error) {
	if err != nil {
		panic(err)
	}
}

// pathOf returns the path under which a file of docs/ is served; the README of a folder is served under the folder's
// path.
func pathOf(name string) string {
	return path.Join("/docs", strings.TrimSuffix(strings.TrimSuffix(name, ".md"), "README"))
}

func render(name string, source []byte) (page, error) {
	p := page{Path: pathOf(name)}
	root := markdown.Parser().Parse(text.NewReader(source))
	followLinks(root, name)
	p.read(root, source)
	var b bytes.Buffer
	if err := markdown.Renderer().Render(&b, source, root); err != nil {
		return p, fmt.Errorf("render docs/%s: %w", name, err)
	}
	// Content wider than a phone scrolls by itself, by keyboard too. In text < is escaped, so these are the tags.
	scrolling := strings.NewReplacer("<pre>", `<pre tabindex="0">`,
		"<table>", `<div class="wide" tabindex="0"><table>`, "</table>", "</table></div>")
	p.Body = template.HTML(scrolling.Replace(b.String())) //nolint:gosec // of our own pages, without HTML in them
	return p, nil
}

// followLinks rewrites links between pages to the paths where the pages are served. Pages outside docs/ are not
// served, so links to them become text.
func followLinks(root ast.Node, name string) {
	var links []*ast.Link
	must(ast.Walk(root, func(n ast.Node, entering bool) (ast.WalkStatus, error) {
		if link, ok := n.(*ast.Link); ok && entering {
			links = append(links, link)
		}
		return ast.WalkContinue, nil
	}))
	for _, link := range links {
		to, err := url.Parse(string(link.Destination))
		must(err)
		if to.Scheme != "" || to.Path == "" {
			continue
		}
		file := path.Join(path.Dir(name), to.Path)
		if _, err := fs.Stat(pages.Pages, file); err == nil {
			to.Path = pathOf(file)
			link.Destination = []byte(to.String())
			continue
		}
		for link.HasChildren() {
			link.Parent().InsertBefore(link.Parent(), link, link.FirstChild())
		}
		link.Parent().RemoveChild(link.Parent(), link)
	}
}

// read finds the title of a page and its sections.
func (p *page) read(root ast.Node, source []byte) {
	for n := root.FirstChild(); n != nil; n = n.NextSibling() {
		words := strings.Join(strings.Fields(textOf(n, source)), " ")
		if heading, ok := n.(*ast.Heading); ok {
			if p.Title == "" {
				p.Title = words
			}
			at := p.Path
			if id, ok := heading.AttributeString("id"); ok && heading.Level > 1 {
				at += "#" + string(id.([]byte))
			}
			p.sections = append(p.sections, section{Path: at, Page: p.Title, Title: words})
		} else if len(p.sections) > 0 {
			s := &p.sections[len(p.sections)-1]
			s.Text = strings.TrimSpace(s.Text + " " + words)
		}
	}
}

// textOf returns the text of a node without its markup.
func textOf(root ast.Node, source []byte) string {
	var b strings.Builder
	must(ast.Walk(root, func(n ast.Node, entering bool) (ast.WalkStatus, error) {
		if !entering {
			if n.Type() == ast.TypeBlock {
				b.WriteByte(' ')
			}
			return ast.WalkContinue, nil
		}
		switch n := n.(type) {
		case *ast.Text:
			b.Write(n.Segment.Value(source))
			if n.SoftLineBreak() || n.HardLineBreak() {
				b.WriteByte(' ')
			}
		case *ast.FencedCodeBlock:
			for i := range n.Lines().Len() {
				line := n.Lines().At(i)
				b.Write(line.Value(source))
			}
		}
		return ast.WalkContinue, nil
	}))
	return b.String()
}

// operations returns the operations of the API, which the reference page shows.
func operations() (out []section) {
	type operation struct {
		ID          string `json:"operationId"`
		Summary     string `json:"summary"`
		Description string `json:"description"`
	}
	var document struct {
		Paths map[string]map[string]operation `json:"paths"`
	}
	must(json.Unmarshal(openapi.JSON(), &document))
	for _, at := range slices.Sorted(maps.Keys(document.Paths)) {
		for _, method := range slices.Sorted(maps.Keys(document.Paths[at])) {
			o := document.Paths[at][method]
			out = append(out, section{Path: "/docs#" + o.ID, Page: "API", Title: strings.ToUpper(method) + " " + at,
				Text: strings.TrimSpace(o.Summary + ". " + o.Description)})
		}
	}
	return out
}
