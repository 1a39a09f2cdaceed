// A client of the API that this page comes from. An error is a sentence for people, made of what the API said.

/** Which state an answer is made of. */
export interface Position {
  block: string | null
  seq: string | null
  generation: string | null
}

export interface Answer<T, M = undefined> {
  data: T
  meta: M
  position: Position
}

export interface Progress {
  generation: number
  seq: number
  recordsLeft: number
  etaSeconds: number | null
  phase: string
}

export interface Fault {
  field: string
  reason: string
}

export class ApiError extends Error {
  constructor(
    message: string,
    readonly status: number,
    readonly code: string,
    readonly details: unknown,
    readonly requestId: string | null,
    /** Seconds after which it may be tried again; null: trying again does not help. */
    readonly retryAfter: number | null,
  ) {
    super(message)
  }

  /** What is wrong with each field of the request. */
  get faults(): Fault[] {
    return Array.isArray(this.details) ? (this.details as Fault[]) : []
  }

  /** How far the first read model is, while it is built. */
  get progress(): Progress | null {
    const details = this.details as { progress?: Progress } | null | undefined
    return details && !Array.isArray(details) ? (details.progress ?? null) : null
  }
}

/** Seconds between two tries where the API named none. */
const PATIENCE = 5

export type Query = Record<string, string | number | boolean | null | undefined>

/** The URL of a question. Parameters that are null or empty are left out. */
export function url(path: string, query: Query = {}): string {
  const out = new URLSearchParams()
  for (const [name, value] of Object.entries(query)) {
    if (value !== null && value !== undefined && value !== "" && value !== false) out.set(name, String(value))
  }
  const text = out.toString()
  return text === "" ? path : `${path}?${text}`
}

/** Sends a request; throws an ApiError, or the AbortError of its signal. */
export async function ask<T, M = undefined>(href: string, init: RequestInit = {}): Promise<Answer<T, M>> {
  let response: Response
  try {
    response = await fetch(href, { ...init, headers: { Accept: "application/json", ...init.headers } })
  } catch (error) {
    if (init.signal?.aborted) throw error
    throw new ApiError("The server cannot be reached. It is tried again.", 0, "UNREACHABLE", null, null, PATIENCE)
  }
  const said = response.headers
  let body: unknown
  try {
    body = await response.json()
  } catch (error) {
    if (init.signal?.aborted) throw error
    throw new ApiError(`The server answered ${response.status} and not in JSON.`, response.status, "NOT_JSON", null, said.get("X-Request-Id"), PATIENCE)
  }
  const answer = body as { ok?: boolean; data?: T; meta?: M; error?: { code: string; message: string; requestId: string; details?: unknown } }
  if (!response.ok || answer.ok !== true) {
    const retry = Number(said.get("Retry-After"))
    const again = response.status === 503 || response.status === 429 || response.status >= 500 ? Math.max(1, retry || PATIENCE) : null
    const error = answer.error
    throw new ApiError(error?.message ?? `The server answered ${response.status}.`, response.status, error?.code ?? "UNKNOWN", error?.details ?? null, error?.requestId ?? null, again)
  }
  return {
    data: answer.data as T,
    meta: answer.meta as M,
    position: { block: said.get("X-Indexed-Block"), seq: said.get("X-Indexed-Seq"), generation: said.get("X-Generation") },
  }
}
