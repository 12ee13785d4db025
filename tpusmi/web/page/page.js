"use strict";
// What textual.js needs to be told. It makes a terminal of #terminal in the handler of `load` that
// it has just set.

const makeTerminal = window.onload;

window.onload = async (event) => {
  const terminal = document.getElementById("terminal");
  // Seen from here, not from the server: between them may be an SSH tunnel to another port.
  const socket = new URL("ws", document.baseURI);
  socket.protocol = socket.protocol.replace("http", "ws");
  terminal.dataset.sessionWebsocketUrl = socket.href;
  document.getElementById("again").onclick = () => location.reload();
  // The terminal measures the font once, when it is made.
  await Promise.all(["", "bold "].map((style) => document.fonts.load(`${style}14px 'Roboto Mono'`)));
  // Keys are for the dashboard from the start. It is told of the focus, once there is a way to.
  const focus = () => document.querySelector(".xterm-helper-textarea").focus();
  new MutationObserver(focus).observe(terminal, { attributeFilter: ["class"] });
  makeTerminal(event);
  // The theme of the dashboard may change the color of the terminal: the margin has the same.
  const screen = document.querySelector(".xterm-viewport");
  const color = () => (document.body.style.background = screen.style.backgroundColor);
  new MutationObserver(color).observe(screen, { attributeFilter: ["style"] });
};
