// Requests to the server. A new question ends the one before it.

let running = null;

export class Problem extends Error {
  constructor(message, code, retryAfter = null) {
    super(message);
    this.code = code;
    this.retryAfter = retryAfter;
  }
}

export async function ask(name, question) {
  return (await send(name, question)).json();
}

// The same, beside whatever is being answered.
export async function askAside(name, question) {
  return (await send(name, question, new AbortController())).json();
}

// Calls `each` with every line of a stream as it arrives.
export async function askLines(name, question, each) {
  const response = await send(name, question);
  const reader = response.body.pipeThrough(new TextDecoderStream()).getReader();
  let rest = "";
  for (;;) {
    const { value, done } = await reader.read();
    const lines = (rest + (value ?? "")).split("\n");
    rest = done ? "" : lines.pop();
    for (const line of lines) {
      if (!line) continue;
      const found = JSON.parse(line);
      if (found.code) throw new Problem(found.message, found.code);
      each(found);
    }
    if (done) return;
  }
}

async function send(name, question, aside = null) {
  const own = aside ?? new AbortController();
  if (!aside) {
    running?.abort();
    running = own;
  }
  let response;
  try {
    response = await fetch(`/api/${name}`, question === undefined ? { signal: own.signal } : {
      method: "POST",
      headers: { "Content-Type": "application/json" },
      body: JSON.stringify(question),
      signal: own.signal,
    });
  } catch (error) {
    if (error.name === "AbortError") throw error;
    throw new Problem("The server does not answer. Is it still running?", "E_NO_SERVER");
  }
  if (response.ok) return response;
  const said = await response.json().catch(() => ({}));
  throw new Problem(
    said.message ?? `The server answered ${response.status}.`,
    said.code ?? "E_FAILED",
    Number(response.headers.get("Retry-After")) || null,
  );
}
