// Package docs carries the pages of this folder, so that navlog can serve those of its own
// version.
package docs

import "embed"

// Pages are the files, by their names in this folder.
//
//go:embed *.md adr/*.md
var Pages embed.FS
