// Package web serves the pages that show navlog to people. They are one HTML file, a script, a style sheet and an
// icon, built by esbuild from src and committed in dist, so that building navlog needs no Node; `make web` builds
// them, and `make verify` compares them.
//
//	main.tsx     the frame: navigation, search, time machine, and the page of the path
//	router.ts    the address bar, which is the whole state of a page
//	openapi.ts, api.ts, answers.ts
//	             the paths of schemas/openapi, requests to them (openapi-fetch: what is not
//	             in the document does not compile), and answers as components use them
//	partner.ts   requests that need a key, which it keeps in memory, or on request in the tab
//	signature.ts the signature of a webhook, computed and compared in the browser
//	verify.ts, rlp.ts
//	             the proofs of explain, from the hash of a block to what is shown of an event
//	watched.ts   values outside of the components: the address bar, the status, the key
//	follow.ts    the newest events, as the stream sends them
//	format.ts    amounts, times and ages as text: no amount becomes a float
//	assets.ts    sums by asset: amounts of different assets are never added
//	axis.ts      the labels of charts, which are exact
//	csv.ts, rows.ts
//	             a user's movements as a file for an accountant, made of whole lists
//	explorer.ts  links to the external explorer that the operator configured
//	uptime.ts, endpointdays.ts
//	             the days of the programs and of a partner's endpoint, in words
//	components, pages
//	             what is on the screen
//
// The pages only call the API that serves them, under a policy without exceptions: no inline code, and nothing from
// other hosts.
package web

import (
	"embed"
	"io/fs"
	"path"

	"github.com/navlog/navlog/query/serve"
)

//go:embed dist
var dist embed.FS

// Paths serve the page, whose script reads the address bar.
var Paths = []string{"/", "/vault/{address}", "/users", "/user/{address}", "/events", "/tx/{hash}", "/search",
	"/compare", "/partner", "/partner/delivery/{eventId}", "/status"}

var kinds = map[string]string{".js": "text/javascript; charset=utf-8", ".css": "text/css; charset=utf-8",
	".svg": "image/svg+xml"}

// Files returns the page, at each of its paths, and what it loads.
func Files() []serve.File {
	page := read("dist/index.html")
	var out []serve.File
	for _, p := range Paths {
		out = append(out, serve.File{Path: p, Kind: "text/html; charset=utf-8", Body: page})
	}
	names, err := fs.Glob(dist, "dist/assets/*")
	if err != nil {
		panic(err) // the pattern is valid
	}
	for _, name := range names {
		out = append(out, serve.File{Path: "/assets/" + path.Base(name), Kind: kinds[path.Ext(name)], Body: read(name),
			Immutable: true})
	}
	return out
}

func read(name string) []byte {
	body, err := dist.ReadFile(name)
	if err != nil {
		panic(err) // the file is part of the binary
	}
	return body
}
