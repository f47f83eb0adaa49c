"""The online runner under load.

handlers   what is served
questions  the rows that are asked, and the batch runner's answers
asking     real clients, one method for each wire form
faults     requests that must be refused, or that nobody waits for
traffic    a process of clients that send both and judge every answer
peers      other servers of the same model, as their users would write them
drive      a closed-loop load generator that checks every answer
contest    interleaved rounds of ours and all peers
"""
