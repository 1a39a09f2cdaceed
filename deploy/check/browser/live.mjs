// What the browser tests share: a browser, the live system, and its chain. What a page shows is compared with the API, which is
// called here without any of the pages' code.
import assert from "node:assert/strict"
import { readFileSync } from "node:fs"
import { createRequire } from "node:module"
import { after, before } from "node:test"
import { chromium } from "playwright-core"

export const ready = JSON.parse(readFileSync(process.env.READY, "utf8"))
export const axe = readFileSync(createRequire(import.meta.url).resolve("axe-core/axe.min.js"), "utf8")
export const wide = { width: 1280, height: 900 }
export const phone = { width: 360, height: 740 }
export const patience = 30_000

export let browser
before(async () => {
  browser = await chromium.launch({ executablePath: process.env.CHROMIUM, args: process.getuid?.() === 0 ? ["--no-sandbox"] : [] })
  await until("users of every vault, and something to be settled", async () => {
    const users = await api("/api/v1/users")
    const settlement = await api("/api/v1/settlement/summary")
    return users.meta.total >= 3 && settlement.data.some((entry) => entry.depositsToSweep.count > 0)
  })
})
after(() => browser?.close())

export async function api(path, header = {}) {
  const answer = await fetch(ready.api + path, { headers: header })
  const body = await answer.json()
  assert.ok(answer.ok, `${path}: ${answer.status} ${JSON.stringify(body)}`)
  return body
}

export async function rpc(method, ...params) {
  const answer = await fetch(ready.rpc, { method: "POST", headers: { "content-type": "application/json" }, body: JSON.stringify({ jsonrpc: "2.0", id: 1, method, params }) })
  const body = await answer.json()
  assert.equal(body.error, undefined, `${method}: ${JSON.stringify(body.error)}`)
  return body.result
}

/** Waits for a condition. */
export async function until(what, holds) {
  for (const end = Date.now() + 4 * patience; ; await new Promise((done) => setTimeout(done, 250))) {
    if (await holds().catch(() => false)) return
    assert.ok(Date.now() < end, `there is no ${what}`)
  }
}

/** The newest block that is final and indexed: on a busy machine, the tables may be behind the chain's final block. */
export async function finalBlock() {
  const { finalBlock, indexedBlock } = (await api("/status")).data
  return String(Math.min(Number(finalBlock), Number(indexedBlock)))
}

export const indexed = async () => (await api("/status")).data.indexedBlock

/**
 * Reorganises the newest blocks and waits until navlog has noticed. The traffic is suspended meanwhile, and the chain
 * mines nothing by itself, because anvil permanently loses a block that it mines during a reorganisation.
 */
export async function reorganise(depth) {
  const from = Number(await indexed())
  process.kill(Number(process.env.UP), "SIGSTOP")
  try {
    await rpc("evm_setIntervalMining", 0)
    let before
    await until("end of what was sent already", async () => {
      const now = await rpc("eth_blockNumber")
      const pending = (await rpc("txpool_status")).pending
      const still = now === before && pending === "0x0"
      before = now
      if (pending !== "0x0") await rpc("evm_mine") // it was sent after the last block of the interval
      return still
    })
    await rpc("anvil_reorg", depth, [])
  } finally {
    process.kill(Number(process.env.UP), "SIGCONT")
    await rpc("evm_setIntervalMining", 1)
  }
  await until("block after the reorganisation", async () => Number(await indexed()) > from)
}

/** Reorganises the block of the newest event if it is one of the newest blocks. */
export async function takeBackAnEvent() {
  await until("event in one of the newest blocks", async () => {
    const [event] = (await api("/api/v1/events?pageSize=1")).data
    const above = Number(await rpc("eth_blockNumber")) - Number(event.blockNumber)
    if (above > 3) return false
    await reorganise(above + 1)
    return (await api(`/api/v1/events?retracted=true&tx=${event.txHash}`)).data.some((one) => one.seq === event.seq && one.state === "retracted")
  })
}

/** Opens a page and records what goes wrong with it. */
export async function open(path, { viewport = wide, colorScheme = "light" } = {}) {
  const context = await browser.newContext({ viewport, colorScheme })
  const page = await context.newPage()
  page.setDefaultTimeout(patience)
  const wrong = []
  page.on("console", (message) => ["error", "warning"].includes(message.type()) && wrong.push(`console: ${message.text()}`))
  page.on("pageerror", (error) => wrong.push(`error: ${error}`))
  page.on("requestfailed", (request) => {
    if (request.failure()?.errorText !== "net::ERR_ABORTED") wrong.push(`${request.url()}: ${request.failure()?.errorText}`)
  })
  page.on("response", (response) => response.status() >= 400 && wrong.push(`${response.url()}: ${response.status()}`))
  page.on("request", (request) => {
    if (!request.url().startsWith(ready.api) && !/^(data|blob):/.test(request.url())) wrong.push(`requests ${request.url()}`)
  })
  await page.goto(ready.api + path)
  await page.locator("h1").first().waitFor()
  await settled(page)
  return { page, wrong, close: () => context.close() }
}

/** Waits until nothing is being loaded. */
export async function settled(page) {
  // Pages poll the status: if that is slow, the network never becomes idle.
  await page.waitForLoadState("networkidle", { timeout: 5000 }).catch(() => {})
  await page.locator(".note.waiting").first().waitFor({ state: "detached" })
}

/** The digits of an amount in its title: the native units. */
export const native = (title) => (/=\s+([\d,]+) native units/.exec(title)?.[1] ?? title.split("\n")[0]).replaceAll(",", "")

