// Builds the pages into dist, which is committed: `make web`. With --test it builds the unit tests instead and runs them.
// The same sources give the same bytes, so `make verify` can rebuild and compare.
import { spawnSync } from "node:child_process"
import { mkdirSync, readFileSync, readdirSync, rmSync, writeFileSync } from "node:fs"
import { basename, join } from "node:path"
import { build } from "esbuild"

const root = import.meta.dirname
const shared = { absWorkingDir: root, bundle: true, logLevel: "warning", target: "es2022", jsx: "automatic", jsxImportSource: "preact" }

if (process.argv.includes("--test")) {
  const out = join(root, "node_modules", ".test")
  rmSync(out, { recursive: true, force: true })
  const tests = readdirSync(join(root, "src"), { recursive: true }).filter((name) => name.endsWith(".test.ts"))
  await build({ ...shared, entryPoints: tests.map((name) => join("src", name)), outdir: out, platform: "node", format: "esm", define: { "location.origin": '"http://navlog.test"' }, outExtension: { ".js": ".mjs" } })
  const built = readdirSync(out, { recursive: true }).filter((name) => name.endsWith(".mjs"))
  process.exit(spawnSync(process.execPath, ["--test", ...built.map((name) => join(out, name))], { stdio: "inherit" }).status ?? 1)
}

const dist = join(root, "dist")
rmSync(dist, { recursive: true, force: true })
const options = { ...shared, outdir: join(dist, "assets"), entryNames: "[name]-[hash]", assetNames: "[name]-[hash]", minify: true, metafile: true, legalComments: "eof" }
const results = [
  // A blocking script: it applies the chosen theme before anything is drawn.
  await build({ ...options, entryPoints: ["src/theme.ts"], format: "iife" }),
  await build({ ...options, entryPoints: ["src/main.tsx", "src/style.css", "src/icon.svg"], format: "esm", loader: { ".svg": "copy" } }),
]
let page = readFileSync(join(root, "src", "index.html"), "utf8")
for (const { metafile } of results) {
  for (const [file, { entryPoint }] of Object.entries(metafile.outputs)) {
    const source = entryPoint ?? ""
    // The page names files by their source; it loads them by their name with the hash.
    if (source) page = page.replaceAll(`"${basename(source)}"`, `"/assets/${basename(file)}"`)
  }
}
mkdirSync(dist, { recursive: true })
writeFileSync(join(dist, "index.html"), page)
