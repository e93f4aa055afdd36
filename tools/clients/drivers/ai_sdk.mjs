// The AI SDK of Vercel: generateText and streamText with a tool, over chat completions, Responses and Messages.
import { createRequire } from "node:module";
import { pathToFileURL } from "node:url";

const load = createRequire(process.env.CLIENT_CACHE + "/npm-ai/package.json");
const get = (name) => import(pathToFileURL(load.resolve(name)));
const { generateText, streamText, tool, stepCountIs, isStepCount } = await get("ai");
const { createOpenAICompatible } = await get("@ai-sdk/openai-compatible");
const { createAnthropic } = await get("@ai-sdk/anthropic");
const { createOpenAI } = await get("@ai-sdk/openai");
const { z } = await get("zod");

const url = process.env.SERVER_URL;
const said = JSON.parse(process.env.SCRIPT);
const apiKey = "not-a-key";
let ran = [];
const tools = {
  get_weather: tool({
    description: "The weather of a city.",
    inputSchema: z.object({ city: z.string() }),
    execute: async ({ city }) => { ran.push(city); return said.RESULT; },
  }),
};

const models = {
  openai_compatible: createOpenAICompatible({ name: "local", baseURL: url + "/v1", apiKey, includeUsage: true })(said.MODEL),
  openai_responses: createOpenAI({ baseURL: url + "/v1", apiKey }).responses(said.MODEL),
  anthropic: createAnthropic({ baseURL: url + "/v1", apiKey })(said.MODEL),
};

function same(found, expected) {
  if (JSON.stringify(found) !== JSON.stringify(expected))
    throw new Error(`expected ${JSON.stringify(expected)}, found ${JSON.stringify(found)}`);
}

let failed = 0;
async function step(name, run) {
  ran = [];
  try {
    await run();
    console.log("pass " + name);
  } catch (error) {
    failed++;
    console.log(`FAIL ${name}: ${error.name}: ${String(error.message).replace(/\s+/g, " ").slice(0, 300)}`);
  }
}

const stopWhen = (isStepCount ?? stepCountIs)(5);
for (const [name, model] of Object.entries(models)) {
  await step(name, async () => same((await generateText({ model, prompt: "Say hello.", maxRetries: 0 })).text, said.PLAIN));
  await step(name + "_tools", async () => {
    same((await generateText({ model, prompt: said.PROMPT, tools, stopWhen, maxRetries: 0 })).text, said.FINAL);
    same(ran, ["Paris"]);
  });
  await step(name + "_tools_stream", async () => {
    let problem;
    const result = streamText({ model, prompt: said.PROMPT, tools, stopWhen, maxRetries: 0, onError: ({ error }) => { problem = error; } });
    let text = "";
    for await (const word of result.textStream) text += word;
    if (problem) throw problem;
    same([text, ran], [said.FINAL, ["Paris"]]);
  });
}
process.exit(failed ? 1 : 0);
