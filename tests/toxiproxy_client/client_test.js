// toxiproxy-node-client, unmodified, against `leafcutter proxy --toxiproxy`: what its users do with it, with real connections.
// Usage: node client_test.js LEAFCUTTER; NODE_PATH names the folder that the client is installed in.
"use strict";

const assert = require("node:assert/strict");
const { spawn } = require("node:child_process");
const net = require("node:net");
const readline = require("node:readline");
const test = require("node:test");
const { Toxiproxy } = require("toxiproxy-node-client");

const program = process.argv[2];
const patience = 10000; // for everything that is awaited

/// Starts the program on a free port; resolves to its process and the address of its interface.
function startProgram(environment = {}, more = []) {
  const child = spawn(program, ["proxy", "--toxiproxy", "127.0.0.1:0", "--format", "json", ...more], {
    env: { ...process.env, ...environment },
    stdio: ["ignore", "pipe", "inherit"],
  });
  return new Promise((resolve, reject) => {
    child.once("error", reject);
    child.once("exit", (code) => reject(new Error(`the program ended with ${code} before it said anything`)));
    readline.createInterface({ input: child.stdout }).once("line", (line) => {
      child.removeAllListeners("exit");
      resolve({ child, host: `http://${JSON.parse(line).listen}` });
    });
  });
}

function stopProgram(child) {
  return new Promise((resolve) => {
    child.once("exit", (code) => resolve(code));
    child.kill("SIGTERM");
  });
}

/// A server on a free port that does `serve` with each connection.
function startServer(serve) {
  const server = net.createServer({ allowHalfOpen: true }, (socket) => {
    socket.on("error", () => {});
    serve(socket);
  });
  return new Promise((resolve) => {
    server.listen(0, "127.0.0.1", () => resolve({ server, address: `127.0.0.1:${server.address().port}` }));
  });
}

/// Connects, sends, and collects until the end: { bytes, error, milliseconds }.
function talk(address, send = "x", until = Infinity) {
  const [host, port] = address.split(":");
  const began = process.hrtime.bigint();
  return new Promise((resolve, reject) => {
    const result = { bytes: "", error: undefined, milliseconds: 0 };
    const socket = net.connect({ host, port: Number(port) }, () => socket.write(send));
    const finish = () => {
      clearTimeout(timer);
      result.milliseconds = Number(process.hrtime.bigint() - began) / 1e6;
      socket.destroy();
      resolve(result);
    };
    const timer = setTimeout(() => reject(new Error(`nothing ended the connection to ${address}`)), patience);
    socket.on("data", (data) => {
      result.bytes += data;
      if (result.bytes.length >= until) finish();
    });
    socket.on("error", (error) => (result.error = error.code));
    socket.on("close", finish);
  });
}

/// One byte there and back.
const echoed = (address) => talk(address, "x", 1);

test("toxiproxy-node-client", async (t) => {
  const { child, host } = await startProgram();
  const { server, address: upstream } = await startServer((socket) => socket.pipe(socket));
  const { server: talker, address: talkative } = await startServer((socket) =>
    socket.once("data", () => socket.end("d".repeat(5000))),
  );
  const toxiproxy = new Toxiproxy(host);
  const fresh = (name, to = upstream) => toxiproxy.createProxy({ name, listen: "localhost:0", upstream: to });
  const refused = (status) => ({ message: `Request failed with status code ${status}` });

  await t.test("says its version", async () => {
    assert.equal(JSON.parse(await toxiproxy.getVersion()).version, "2.12.0");
  });

  await t.test("creates a proxy on a free port", async () => {
    const proxy = await fresh("created");
    assert.match(proxy.listen, /^127\.0\.0\.1:[1-9]\d*$/);
    assert.deepEqual(proxy.toJson(), { enabled: true, listen: proxy.listen, name: "created", upstream });
    assert.equal((await echoed(proxy.listen)).bytes, "x");
  });

  await t.test("gets one and all of them", async () => {
    const proxy = await fresh("found");
    assert.equal((await toxiproxy.get("found")).listen, proxy.listen);
    const all = await toxiproxy.getAll();
    assert.equal(all.found.listen, proxy.listen);
    assert.equal(all.created.upstream, upstream);
  });

  await t.test("adds, gets, updates and removes a latency", async () => {
    const proxy = await fresh("slow");
    const toxic = await proxy.addToxic({
      name: "lag",
      type: "latency",
      stream: "downstream",
      toxicity: 1,
      attributes: { latency: 150, jitter: 0 },
    });
    assert.ok((await echoed(proxy.listen)).milliseconds >= 150);
    const updated = await toxic.update({ ...toxic.toJson(), attributes: { latency: 300 } });
    assert.deepEqual(updated.attributes, { latency: 300, jitter: 0 });
    assert.ok((await echoed(proxy.listen)).milliseconds >= 300);
    assert.deepEqual((await proxy.getToxic("lag")).toJson(), updated.toJson());
    await updated.remove();
    assert.ok((await echoed(proxy.listen)).milliseconds < 300);
    await assert.rejects(proxy.getToxic("lag"), refused(404));
  });

  await t.test("is told what is not there, wrong or taken", async () => {
    const proxy = await fresh("strict");
    await assert.rejects(toxiproxy.get("nobody"), refused(404));
    await assert.rejects(fresh("strict"), refused(409));
    await assert.rejects(toxiproxy.createProxy({ name: "", listen: "localhost:0", upstream }), refused(400));
    await assert.rejects(toxiproxy.createProxy({ name: "late", listen: proxy.listen, upstream }), refused(500));
    await assert.rejects(proxy.addToxic({ type: "lag", attributes: {} }), refused(400));
    await proxy.addToxic({ type: "noop", attributes: {} });
    await assert.rejects(proxy.addToxic({ type: "noop", attributes: {} }), refused(409));
  });

  await t.test("disables: refused; and enables: the same port", async () => {
    const proxy = await fresh("down");
    assert.equal((await proxy.update({ ...proxy.toJson(), enabled: false })).enabled, false);
    assert.equal((await echoed(proxy.listen)).error, "ECONNREFUSED");
    assert.equal((await proxy.update({ ...proxy.toJson(), enabled: true })).listen, proxy.listen);
    assert.equal((await echoed(proxy.listen)).bytes, "x");
  });

  await t.test("leads elsewhere", async () => {
    const proxy = await fresh("moved");
    assert.equal((await proxy.update({ ...proxy.toJson(), upstream: talkative })).upstream, talkative);
    assert.equal((await talk(proxy.listen)).bytes.length, 5000);
  });

  await t.test("removes a proxy", async () => {
    const proxy = await fresh("gone");
    await proxy.remove();
    await assert.rejects(toxiproxy.get("gone"), refused(404));
    assert.equal((await echoed(proxy.listen)).error, "ECONNREFUSED");
  });

  await t.test("resets connections: new ones, and one that is open and idle", async () => {
    const proxy = await fresh("reset");
    const [name, port] = proxy.listen.split(":");
    const idle = net.connect({ host: name, port: Number(port) });
    idle.write("x");
    await new Promise((resolve) => idle.once("data", resolve));
    const ended = new Promise((resolve) => idle.once("error", (error) => resolve(error.code)));
    await proxy.addToxic({ type: "reset_peer", attributes: { timeout: 0 } });
    assert.equal(await ended, "ECONNRESET");
    assert.equal((await talk(proxy.listen)).error, "ECONNRESET");
  });

  await t.test("a toxicity of 0 touches nobody", async () => {
    const proxy = await fresh("spared");
    await proxy.addToxic({ type: "reset_peer", toxicity: 0, attributes: { timeout: 0 } });
    for (let i = 0; i < 10; ++i) assert.equal((await echoed(proxy.listen)).bytes, "x");
  });

  await t.test("times out", async () => {
    const proxy = await fresh("stuck");
    await proxy.addToxic({ type: "timeout", attributes: { timeout: 200 } });
    const result = await talk(proxy.listen);
    assert.equal(result.bytes, "");
    assert.ok(result.milliseconds >= 195 && result.milliseconds < 3000, `${result.milliseconds} ms`);
  });

  await t.test("limits, slices, slows down and closes late", async () => {
    const check = async (type, attributes, bytes, least) => {
      const proxy = await fresh(type, talkative);
      await proxy.addToxic({ type, attributes });
      const result = await talk(proxy.listen);
      assert.equal(result.bytes.length, bytes, type);
      assert.ok(result.milliseconds >= least, `${type}: ${result.milliseconds} ms`);
      assert.equal(result.error, undefined, type);
    };
    await check("limit_data", { bytes: 1234 }, 1234, 0);
    await check("slicer", { average_size: 500, size_variation: 100, delay: 20000 }, 5000, 140);
    await check("bandwidth", { rate: 20 }, 5000, 240);
    await check("slow_close", { delay: 200 }, 5000, 200);
    await check("noop", {}, 5000, 0);
  });

  await t.test("populates, also with toxics, and again", async () => {
    const wanted = [
      { name: "one", listen: "localhost:0", upstream },
      { name: "two", listen: "localhost:0", upstream, enabled: false },
      { name: "three", listen: "localhost:0", upstream, toxics: [{ type: "latency", attributes: { latency: 100 } }] },
    ];
    const proxies = await toxiproxy.populate(wanted);
    assert.deepEqual(Object.keys(proxies), ["one", "two", "three"]);
    assert.equal(proxies.two.enabled, false);
    assert.equal((await proxies.three.getToxic("latency_downstream")).attributes.latency, 100);
    assert.ok((await echoed(proxies.three.listen)).milliseconds >= 100);
    assert.equal((await toxiproxy.populate(wanted)).three.listen, proxies.three.listen);
    await assert.rejects(toxiproxy.populate([{ name: "four" }]), refused(400));
  });

  await t.test("reset brings everything back", async () => {
    await toxiproxy.reset();
    const proxies = await toxiproxy.getAll();
    for (const name of ["one", "two", "three", "stuck", "down"]) {
      assert.equal(proxies[name].enabled, true, name);
      assert.equal((await echoed(proxies[name].listen)).bytes, "x", name);
    }
  });

  await t.test("ends in order", async () => {
    assert.equal(await stopProgram(child), 0);
    server.close();
    talker.close();
  });
});

test("a token keeps a client out that has none", async () => {
  const { child, host } = await startProgram({ LEAFCUTTER_TOXIPROXY_TOKEN: "0123456789abcdef" });
  await assert.rejects(new Toxiproxy(host).getAll(), { message: "Request failed with status code 401" });
  const answer = await fetch(`${host}/proxies`, { headers: { Authorization: "Bearer 0123456789abcdef" } });
  assert.equal(answer.status, 200);
  assert.equal(await stopProgram(child), 0);
});
