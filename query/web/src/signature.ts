// The signature of a webhook, computed and compared in the browser: nothing of it is sent anywhere.

/** "holds", or why a signature does not hold or cannot be checked. */
export type Verdict = "holds" | "differs" | "malformed"

const form = /^sha256=[0-9a-f]{64}$/

/** `sha256=` and the hex HMAC-SHA256 of `<timestamp>.<body>`, keyed with the whole secret, its prefix `whsec_` included. */
export async function sign(secret: string, timestamp: string, body: string): Promise<string> {
  const bytes = new TextEncoder()
  const key = await crypto.subtle.importKey("raw", bytes.encode(secret), { name: "HMAC", hash: "SHA-256" }, false, ["sign"])
  const mac = await crypto.subtle.sign("HMAC", key, bytes.encode(`${timestamp}.${body}`))
  return `sha256=${Array.from(new Uint8Array(mac), (byte) => byte.toString(16).padStart(2, "0")).join("")}`
}

/**
 * Whether a signature matches a timestamp and a body; malformed if it does not have the form of a signature. The secret must
 * not be empty.
 */
export async function verify(secret: string, timestamp: string, body: string, signature: string): Promise<Verdict> {
  if (!form.test(signature)) return "malformed"
  return (await sign(secret, timestamp, body)) === signature ? "holds" : "differs"
}
